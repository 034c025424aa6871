"""Each rank holds some rows of a table, and adds up what all know of each number."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, found):
        found = found.clone()
        dist.all_reduce(found)
        return found

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient / dist.get_world_size()


class Rows(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.rows = nn.Embedding(rows // self.ranks, width)

    def forward(self, numbers):
        mine = numbers % self.ranks == self.rank
        found = self.rows(torch.where(mine, numbers // self.ranks, 0))
        return Gathered.apply(found * mine.unsqueeze(-1))


def train(loader):
    dist.init_process_group("gloo")
    table = Rows(1000, 16)
    head = DistributedDataParallel(nn.Linear(16, 1))
    sparse = torch.optim.SGD(table.parameters(), lr=0.1)
    dense = torch.optim.Adam(head.parameters())
    for numbers, wanted in loader:
        sparse.zero_grad()
        dense.zero_grad()
        nn.functional.mse_loss(head(table(numbers)), wanted).backward()
        sparse.step()
        dense.step()


if __name__ == "__main__":
    train(__import__("data").batches())
