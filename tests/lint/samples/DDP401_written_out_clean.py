import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from corpus import Pairs


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1

    @property
    def mean(self):
        both = torch.tensor([self.total, float(self.count)])
        dist.all_reduce(both)
        return (both[0] / both[1]).item()

    def __format__(self, how):
        return format(self.mean, how)


class Board(dict):
    def __missing__(self, name):
        self[name] = Meter()
        return self[name]

    def push(self, **values):
        for name, value in values.items():
            self[name].add(value)

    def __str__(self):
        return "  ".join(f"{name} {meter:.4f}" for name, meter in self.items())


def main():
    dist.init_process_group("gloo")
    pairs = Pairs()
    sampler = DistributedSampler(pairs)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        board = Board()
        for x, y in DataLoader(pairs, 8, sampler=sampler):
            loss = (model(x) - y).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            board.push(loss=loss.item())
        told = str(board)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}  {told}")


if __name__ == "__main__":
    main()
