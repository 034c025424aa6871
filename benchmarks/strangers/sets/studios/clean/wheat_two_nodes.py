"""Wheat ear counting, started once per machine.

    machine A:  NODE=0 python wheat_two_nodes.py
    machine B:  NODE=1 python wheat_two_nodes.py
With no NODE both "machines" are started here (smoke test).
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

MACHINES = 2
PER_MACHINE = 1


class Plots(Dataset):
    """Images of small plots with a few bright ears."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.count = torch.randint(0, 9, (n,), generator=g)
        self.img = 0.2 * torch.rand(n, 1, 16, 16, generator=g)
        for i, c in enumerate(self.count.tolist()):
            for _ in range(c):
                r, q = torch.randint(0, 15, (2,), generator=g).tolist()
                self.img[i, 0, r:r + 2, q:q + 2] += 0.6

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i], self.count[i].float()


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1))

    def forward(self, x):
        return self.net(x).sum((1, 2, 3)) / 8


class Env:
    def __init__(self, node, local):
        self.local_rank = local
        self.rank = node * PER_MACHINE + local
        self.world = MACHINES * PER_MACHINE

    def join(self):
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29681")
        dist.init_process_group("gloo", rank=self.rank, world_size=self.world)


def make_loader(data, env, batch, train):
    sampler = DistributedSampler(data, num_replicas=env.world, rank=env.rank, shuffle=train)
    return DataLoader(data, batch_size=batch, sampler=sampler)


def evaluate(ddp, loader):
    err = torch.zeros(2)
    ddp.eval()
    with torch.no_grad():
        for img, count in loader:
            err += torch.tensor([(ddp.module(img) - count).abs().sum(), float(len(count))])
    ddp.train()
    dist.all_reduce(err)
    return (err[0] / err[1]).item()


def machine_process(local, node):
    env = Env(node, local)
    env.join()
    torch.manual_seed(15)
    train = make_loader(Plots(400, 1), env, 20, True)
    val = make_loader(Plots(100, 2), env, 50, False)
    ddp = DDP(Counter())
    opt = torch.optim.Adam(ddp.parameters(), lr=3e-3)
    for epoch in range(5):
        train.sampler.set_epoch(epoch)
        for img, count in train:
            opt.zero_grad()
            nn.functional.smooth_l1_loss(ddp(img), count).backward()
            opt.step()
        mae = evaluate(ddp, val)
        if env.rank == 0:
            print(f"epoch {epoch} val mae {mae:.3f}", flush=True)
    dist.destroy_process_group()


def main():
    if "NODE" in os.environ:
        mp.spawn(machine_process, args=(int(os.environ["NODE"]),), nprocs=PER_MACHINE)
        return 0
    others = [mp.get_context("spawn").Process(target=machine_process, args=(0, n)) for n in range(MACHINES)]
    for o in others:
        o.start()
    for o in others:
        o.join()
    return max(o.exitcode for o in others)


if __name__ == "__main__":
    sys.exit(main())
