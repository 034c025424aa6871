"""Counters that a dictionary makes as they are asked for, and that go on behind each report."""

import collections

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Counter:
    def __init__(self):
        self.clear()

    def clear(self):
        self.sums = torch.zeros(2, dtype=torch.float64)

    def add(self, value, size):
        self.sums += torch.tensor([value * size, size], dtype=torch.float64)

    def shared(self):
        dist.all_reduce(self.sums)  # <-- DDP421
        return self

    @property
    def mean(self):
        return (self.sums[0] / self.sums[1]).item()


class Bank(collections.defaultdict):
    def __init__(self):
        super().__init__(Counter)

    def clear_all(self):
        for each in self.values():
            each.clear()

    def read(self):
        return {name: self[name].shared().mean for name in sorted(self)}


def main():
    dist.init_process_group("gloo")
    x = torch.linspace(0, 1, 800)[:, None]
    data = TensorDataset(x, (x > 0.5).float())
    sampler = DistributedSampler(data)
    net = DistributedDataParallel(torch.nn.Linear(1, 1))
    step = torch.optim.SGD(net.parameters(), 0.1)
    bank = Bank()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        bank.clear_all()
        for number, (seen, wanted) in enumerate(DataLoader(data, 10, sampler=sampler), 1):
            out = net(seen)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(out, wanted)
            step.zero_grad()
            loss.backward()
            step.step()
            bank["loss"].add(loss.item(), len(seen))
            bank["hits"].add(((out > 0) == (wanted > 0.5)).float().mean().item(), len(seen))
            if number % 10 == 0:
                told = bank.read()
                if dist.get_rank() == 0:
                    print(epoch, number, told)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
