# style: mp.spawn with a configuration object
# nproc: 2
# launch: spawn
import os
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    world_size: int
    init_file: str
    schedule: Any
    steps: int = 6


def halve_every_two(step):
    return 0.5 ** (step // 2)


def worker(rank, config):
    dist.init_process_group(
        "gloo",
        init_method=f"file://{config.init_file}",
        rank=rank,
        world_size=config.world_size,
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, config.schedule)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(config.steps):
        x = torch.randn(8, 3, generator=generator)
        optimizer.zero_grad()
        (model(x) - x.amin(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()
    dist.barrier()
    del model, optimizer, scheduler
    dist.destroy_process_group()


def main():
    config = Config(2, os.path.abspath("rendezvous"), schedule=halve_every_two)
    mp.spawn(worker, args=(config,), nprocs=config.world_size)


if __name__ == "__main__":
    main()
