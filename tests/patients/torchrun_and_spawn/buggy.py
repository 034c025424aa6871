# style: mp.spawn script started by torchrun
# nproc: 2
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, world_size):
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(4):
        x = torch.randn(8, 4, generator=generator)
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    dist.barrier()
    print(f"rank {rank} of {world_size} done")
    del model, optimizer
    dist.destroy_process_group()


def worker(local_rank, world_size):
    os.environ["RANK"] = str(local_rank)
    train(local_rank, world_size)


def main():
    world_size = int(os.environ["WORLD_SIZE"])
    mp.spawn(worker, args=(world_size,), nprocs=world_size)  # <-- DDP114


if __name__ == "__main__":
    main()
