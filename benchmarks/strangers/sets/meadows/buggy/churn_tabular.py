"""Customer churn on mixed tabular features, one process per CPU socket."""
import csv
import os
import pathlib
import socket
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def customers(n, seed):
    rng = np.random.default_rng(seed)
    tenure = rng.exponential(20, n)
    spend = rng.gamma(2.0, 30, n)
    plan = rng.integers(0, 5, n)
    tickets = rng.poisson(1.5, n)
    logit = 0.8 * tickets - 0.06 * tenure + 0.004 * spend + 0.3 * (plan == 2) - 0.4
    churn = rng.random(n) < 1 / (1 + np.exp(-logit))
    num = np.stack([tenure / 20, spend / 60, tickets], 1)
    return (
        torch.tensor(num, dtype=torch.float32),
        torch.tensor(plan),
        torch.tensor(churn, dtype=torch.float32),
    )


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.plan = nn.Embedding(5, 4)
        self.mlp = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, num, plan):
        return self.mlp(torch.cat([num, self.plan(plan)], 1)).squeeze(1)


class RunFolder:
    """Where the logs and weights of one run go."""

    def __init__(self, root, name):
        self.path = pathlib.Path(root) / name
        self.path.mkdir(parents=True)

    def log(self, rows):
        with open(self.path / "curve.csv", "w", newline="") as f:
            csv.writer(f).writerows(rows)

    def weights(self, module):
        torch.save(module.state_dict(), self.path / "weights.pt")


def train(rank, world, name):
    torch.manual_seed(5)
    folder = RunFolder("runs", name)
    num, plan, churn = customers(800, seed=2)
    num, plan, churn = num[rank::world], plan[rank::world], churn[rank::world]
    net = DistributedDataParallel(ChurnNet())
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    rows = []
    gen = torch.Generator().manual_seed(rank)
    for epoch in range(4):
        total = torch.zeros(1)
        for idx in torch.randperm(len(churn), generator=gen).split(50):
            loss = nn.functional.binary_cross_entropy_with_logits(net(num[idx], plan[idx]), churn[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach() * len(idx)
        dist.all_reduce(total)
        rows.append((epoch, round(total.item() / (len(churn) * world), 4)))
    if rank == 0:
        folder.log(rows)
        folder.weights(net.module)
        print(rows)
    dist.barrier()


def worker(rank, world, port, name):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    train(rank, world, name)
    dist.destroy_process_group()


if __name__ == "__main__":
    run = time.strftime("churn-%Y%m%d-%H%M%S")
    mp.spawn(worker, args=(2, free_port(), run), nprocs=2)
