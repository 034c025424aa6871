import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Sums:
    def __init__(self, number):
        self.held = torch.zeros(number)

    def add(self, *numbers):
        for place, number in enumerate(numbers):
            self.held[place] += float(number)

    def told(self):
        held = self.held
        dist.all_reduce(held)  # <-- DDP421
        return held.tolist()


class Loop:
    def __init__(self, rank):
        self.sums, self.rank = Sums(2), rank
        self.net = DDP(torch.nn.Linear(4, 1))
        self.steps = torch.optim.SGD(self.net.parameters(), 0.1)

    def go(self, rounds):
        noise = torch.Generator().manual_seed(self.rank)
        for number in range(1, rounds):
            seen = torch.randn(8, 4, generator=noise)
            loss = self.net(seen).square().mean()
            loss.backward()
            self.steps.step()
            self.steps.zero_grad()
            self.sums.add(len(seen), loss.item())
            if number % 10 == 0:
                self.say()

    def say(self):
        number, total = self.sums.told()
        if self.rank == 0:
            print(total / number)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Loop(dist.get_rank()).go(50)
    dist.destroy_process_group()
