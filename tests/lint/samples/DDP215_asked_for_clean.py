"""Streams that their workers share, in each way; samples that are drawn come but once as well."""

import argparse
import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Visits(IterableDataset):
    def __init__(self, files, rank, number):
        self.files = files[rank::number]

    def __iter__(self):
        for name in self.files:
            yield from torch.load(name, map_location="cpu")


class Shared(Visits):
    def __iter__(self):
        worker = get_worker_info()
        own = self.files[worker.id :: worker.num_workers] if worker else self.files
        for name in own:
            yield from torch.load(name, map_location="cpu")


class Drawn(Visits):
    def __iter__(self):
        while True:
            yield torch.load(random.choice(self.files), map_location="cpu")


class Noise(IterableDataset):
    def __init__(self, rank, number):
        self.rank, self.number = rank, number

    def __iter__(self):
        for _ in range(self.number):
            yield torch.randn(4) + self.rank


def deal(number):
    worker = get_worker_info()
    worker.dataset.files = worker.dataset.files[number :: worker.num_workers]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--more", type=int, default=0)
    told = parser.parse_args()
    dist.init_process_group("gloo")
    rank, number = dist.get_rank(), dist.get_world_size()
    files = sorted(told.files)
    visits = Visits(files, rank, number)
    several = [
        DataLoader(visits, batch_size=8, num_workers=told.more),
        DataLoader(visits, batch_size=8, num_workers=told.workers, worker_init_fn=deal),
        DataLoader(Shared(files, rank, number), batch_size=8, num_workers=told.workers),
        DataLoader(Drawn(files, rank, number), batch_size=8, num_workers=told.workers),
        DataLoader(Noise(rank, 64), batch_size=8, num_workers=2),
    ]
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    for batches in several:
        for _, batch in zip(range(10), batches):
            learner.zero_grad()
            model(batch).square().mean().backward()
            learner.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
