"""Ensemble of tide-level forecasters: two members are trained at the same time, each by two processes
(python tide_ensemble.py)."""
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD = 2
MEMBERS = 2


def ddp_setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def tide(n, gen):
    start = torch.rand(n, 1, generator=gen) * 100
    t = start + torch.arange(25)[None]
    level = torch.sin(t * 0.506) + 0.3 * torch.sin(t * 0.262 + 1) + 0.05 * torch.randn(n, 25, generator=gen)
    return level[:, :24], level[:, 24]


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.rnn(x.unsqueeze(-1))[0][:, -1]).squeeze(-1)


def fit(rank, member):
    torch.manual_seed(member)
    model = DDP(Forecaster())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    gen = torch.Generator().manual_seed(100 * member + rank)
    for step in range(60):
        x, y = tide(32, gen)
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.05)    # storage is slow
    if rank == 0:
        print(f"member {member}: mse {loss.item():.4f}", flush=True)


def member_main(rank, member, port):
    torch.set_num_threads(1)
    ddp_setup(rank, WORLD, port)
    fit(rank, member)
    dist.destroy_process_group()


def main():
    port = 12000 + os.getpid() % 20000
    jobs = []
    for member in range(MEMBERS):
        jobs.append(mp.spawn(member_main, args=(member, port), nprocs=WORLD, join=False))
    for job in jobs:
        while not job.join():
            pass
    print(f"{len(jobs)} members trained")


if __name__ == "__main__":
    main()
