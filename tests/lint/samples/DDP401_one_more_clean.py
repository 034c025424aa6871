import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Meter:
    def __init__(self):
        self.sums = {}

    def add(self, named):
        for name, value in named.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def tell(self, writer):
        for name, value in self.sums.items():
            if name.startswith("hidden"):
                continue
            mean = torch.tensor(value)
            dist.reduce(mean, 0)
            if writer is not None:
                writer.write(f"{name} {mean.item()}\n")
        self.sums = {}


class Work:
    def __init__(self, writer=None):
        self.net = DistributedDataParallel(torch.nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.meter = Meter()
        self.writer = writer

    def step(self, batch, number):
        loss = self.net(batch).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.meter.add({"loss": loss.item()})
        if number % 10 == 0:
            self.meter.tell(self.writer)


def main(batches):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        work = Work(open("log.txt", "w"))
    else:
        work = Work()
    for number, batch in enumerate(batches):
        work.step(batch, number)


if __name__ == "__main__":
    main(torch.randn(40, 8, 4))
