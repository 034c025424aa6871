"""python spawn_closure.py -- two CPU workers"""
import functools
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def train(rank, world, lr):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(4, 2))
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    g = torch.Generator().manual_seed(rank)
    for _ in range(30):
        x = torch.randn(16, 4, generator=g)
        loss = torch.nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"rank {rank} of {world}: loss {loss.item():.4f}", flush=True)


def setup_and_train(rank, world, port, lr):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    train(rank, world, lr)
    dist.barrier()
    dist.destroy_process_group()


def launch(world=2, lr=0.2):
    port = free_port()

    worker = functools.partial(setup_and_train, world=world, port=port, lr=lr)

    mp.spawn(worker, nprocs=world)


if __name__ == "__main__":
    launch()
