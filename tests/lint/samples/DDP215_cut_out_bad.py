"""Workers of two ranks have one number, and read the same files; others nobody reads."""

from itertools import islice

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Clicks(IterableDataset):
    def __init__(self, files, rank, world):
        self.files, self.rank, self.world = files, rank, world

    def mine(self):
        info = get_worker_info()
        number = info.id if info else 0
        workers = info.num_workers if info else 1
        return islice(self.files, self.rank + number, None, self.world * workers)  # <-- DDP215

    def __iter__(self):
        for file in self.mine():
            yield from torch.load(file)


def main(files):
    dist.init_process_group("gloo")
    clicks = Clicks(files, dist.get_rank(), dist.get_world_size())
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for x in DataLoader(clicks, 20, num_workers=2):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


main([f"clicks-{number}.pt" for number in range(16)])
