"""A sampler of the author's own, which is given all options at once."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Mixed(Sampler):
    def __init__(self, rows, seed, **others):
        self.rows = rows
        self.seed = seed
        self.epoch = 0

    def __iter__(self):
        draw = torch.Generator()
        draw.manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.rows), generator=draw).tolist()
        whole = len(order) // dist.get_world_size() * dist.get_world_size()
        return iter(order[dist.get_rank() : whole : dist.get_world_size()])

    def __len__(self):
        return len(self.rows) // dist.get_world_size()

    def set_epoch(self, epoch):
        self.epoch = epoch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=9)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rows = TensorDataset(torch.arange(512.0)[:, None])
    sampler = Mixed(rows, **vars(args))
    loader = DataLoader(rows, batch_size=16, sampler=sampler)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for (batch,) in loader:
            optimizer.zero_grad()
            model(batch).mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
