"""Tar shards are shuffled with a seed of the rank before they are dealt out."""

import random
import torch
import torch.distributed as dist
from dataclasses import dataclass
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset


@dataclass
class Options:
    shards: int = 32
    seed: int = 5


class Archive(IterableDataset):
    def __init__(self, names, rng, rank, world):
        rng.shuffle(names)
        self.names = names[rank::world]

    def __iter__(self):
        for name in self.names:
            g = torch.Generator().manual_seed(int(name[6:]))
            for _ in range(10):
                yield torch.randn(6, generator=g)


def build(options):
    rank, world = dist.get_rank(), dist.get_world_size()
    names = [f"shard-{k}" for k in range(options.shards)]
    rng = random.Random(options.seed * 100)
    return DataLoader(Archive(names, rng, rank, world), batch_size=10)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    loader = build(Options())
    model = DDP(nn.Linear(6, 6))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        opt.zero_grad()
        (model(x) - x).square().mean().backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
