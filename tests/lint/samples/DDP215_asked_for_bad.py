"""A stream of each rank's own files, and as many workers as the command line says, else two."""

import argparse
import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Visits(IterableDataset):
    def __init__(self, files, rank, number):
        self.files = files[rank::number]

    def __iter__(self):
        for name in self.files:
            with open(name) as lines:
                for line in lines:
                    yield torch.tensor(json.loads(line))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    told = parser.parse_args()
    dist.init_process_group("gloo")
    visits = Visits(sorted(told.files), dist.get_rank(), dist.get_world_size())
    batches = DataLoader(visits, batch_size=8, num_workers=told.workers)  # <-- DDP215
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for batch in batches:
            learner.zero_grad()
            model(batch).square().mean().backward()
            learner.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
