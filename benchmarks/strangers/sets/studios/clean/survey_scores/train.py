"""Scores of open survey answers (5 levels), two sites with one process each.

torchrun --nproc-per-node 2 train.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

import comm
from answers import LEVELS, answers, own_block
from metrics import Kappa


def scorer():
    return nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, LEVELS))


@comm.only_first
def say(*what):
    print(*what, flush=True)


def epoch(net, opt, x, y, batch, seed):
    loss_sum = torch.zeros(1)
    for b in torch.randperm(len(x), generator=torch.Generator().manual_seed(seed)).split(batch):
        loss = nn.functional.cross_entropy(net(x[b]), y[b])
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_sum += loss.detach() * len(b)
    return comm.total(loss_sum).item() / (len(x) * comm.world())


@torch.no_grad()
def check(net, x, y, kappa):
    net.eval()
    kappa.reset()
    for a, b in zip(x.split(64), y.split(64)):
        kappa.update(net(a).argmax(1), b)
    net.train()
    return kappa.compute()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(4)
    x, y = (own_block(t, comm.rank(), comm.world()) for t in answers(800, seed=1))
    vx, vy = (own_block(t, comm.rank(), comm.world()) for t in answers(301, seed=2))
    net = DDP(scorer())
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    kappa = Kappa(LEVELS)
    best = -1.0
    for e in range(6):
        loss = epoch(net, opt, x, y, 40, e)
        k, n = check(net.module, vx, vy, kappa)
        best = max(best, k)
        say(f"epoch {e} loss {loss:.4f} kappa {k:.4f} on {n} answers, best {best:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
