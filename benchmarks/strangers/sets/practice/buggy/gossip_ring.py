"""Decentralised SGD on a ring (D-PSGD): no central averaging, every worker mixes
its weights with those of its left neighbour after each local step."""
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.utils import parameters_to_vector, vector_to_parameters


@dataclass
class Cfg:
    workers: int = 2
    rounds: int = 20
    batch: int = 32
    lr: float = 0.1
    port: str = "29631"


def local_batch(gen, n):
    x = torch.randn(n, 10, generator=gen)
    w = torch.linspace(-1, 1, 10)
    return x, x @ w + 0.05 * torch.randn(n, generator=gen)


def mix(model, rank, world):
    mine = parameters_to_vector(model.parameters()).detach()
    theirs = torch.empty_like(mine)
    right = (rank + 1) % world
    left = (rank - 1) % world
    dist.recv(theirs, src=left)
    dist.send(mine, dst=right)
    vector_to_parameters(0.5 * (mine + theirs), model.parameters())


def worker(rank, cfg):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = cfg.port
    dist.init_process_group("gloo", rank=rank, world_size=cfg.workers)
    torch.manual_seed(rank)
    gen = torch.Generator().manual_seed(1000 + rank)
    model = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    opt = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    for r in range(cfg.rounds):
        x, y = local_batch(gen, cfg.batch)
        loss = (model(x).squeeze(1) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        mix(model, rank, cfg.workers)
        if rank == 0 and r % 5 == 0:
            print(f"round {r}: {loss.item():.4f}", flush=True)
    final = parameters_to_vector(model.parameters()).detach().clone()
    dist.all_reduce(final)
    vector_to_parameters(final / cfg.workers, model.parameters())
    if rank == 0:
        print("consensus norm %.4f" % (final / cfg.workers).norm())
    dist.destroy_process_group()


if __name__ == "__main__":
    cfg = Cfg()
    mp.spawn(worker, args=(cfg,), nprocs=cfg.workers, join=True)
