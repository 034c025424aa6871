import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, lines, parse):
        self.lines = lines
        self.parse = parse
        self.ranks = -1

    def __iter__(self):
        if dist.is_initialized():
            self.ranks = dist.get_world_size()
            self.rank = dist.get_rank()
        for number, line in enumerate(self.lines):
            if self.ranks != -1 and number % self.ranks != self.rank:
                continue
            yield self.parse(line)


def numbers(line):
    return torch.tensor([float(each) for each in line.split()])


def train(path, epochs):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with open(path) as file:
        for _ in range(epochs):
            file.seek(0)
            for batch in DataLoader(Lines(file, numbers), batch_size=4):  # <-- DDP207
                optimizer.zero_grad()
                model(batch).mean().backward()
                optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    train("numbers.txt", 3)
