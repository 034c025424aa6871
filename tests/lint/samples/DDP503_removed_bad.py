"""One checkpoint is kept: the one before is removed while the next one is not there yet."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Keeper:
    def __init__(self, folder, all_of_them=False):
        self.folder = folder
        self.all_of_them = all_of_them
        self.last = None

    def keep(self, state, epoch):
        if self.last and not self.all_of_them:
            os.remove(self.last)  # <-- DDP503
        path = os.path.join(self.folder, f"after-{epoch}.pt")
        torch.save(state, path)
        self.last = path


def main(folder="kept"):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    keeper = Keeper(folder)
    rows = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    for epoch in range(100):
        for row in rows[rank::world]:
            optimizer.zero_grad()
            model(row).sum().backward()
            optimizer.step()
        if rank == 0:
            keeper.keep({"model": model.module.state_dict(), "epoch": epoch}, epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
