import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Teller:
    def through(self, batches, every):
        for number, batch in enumerate(batches):
            yield batch
            if number % every == 0:
                print(number)


def train(probes, learners, batches):
    for x, y in Teller().through(batches, 20):
        losses = []
        for probe in probes:
            loss = nn.functional.cross_entropy(probe(x), y)
            losses.append(loss)
        for learner, loss in zip(learners, losses):
            learner.zero_grad()
            loss.backward()
            learner.step()


def main():
    dist.init_process_group("gloo")
    probes = [DistributedDataParallel(nn.Linear(4, 3)) for _ in range(5)]
    learners = [torch.optim.SGD(probe.parameters(), lr=0.1) for probe in probes]
    batches = [(torch.randn(8, 4), torch.randint(3, (8,))) for _ in range(99)]
    for _ in range(5):
        train(probes, learners, batches)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
