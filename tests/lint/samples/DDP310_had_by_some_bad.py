"""Prices of flats, with a term for the year that the first rank alone was given."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Prices(nn.Module):
    def __init__(self, with_year):
        super().__init__()
        self.flat = nn.Linear(7, 1)
        if with_year:  # <-- DDP310
            self.year = nn.Linear(1, 1)
        else:
            self.year = None

    def forward(self, flats, years):
        price = self.flat(flats)
        return price if self.year is None else price + self.year(years)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    source = torch.Generator().manual_seed(rank)
    model = DistributedDataParallel(Prices(with_year=rank == 0))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(100):
        flats, years = torch.rand(8, 7, generator=source), torch.rand(8, 1, generator=source)
        optimizer.zero_grad()
        (model(flats, years) - flats.sum(1, keepdim=True)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
