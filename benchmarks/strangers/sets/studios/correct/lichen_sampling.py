"""Rare lichen detector: every process draws its own balanced batches with replacement.

Different seeds per process on purpose; there is no epoch and no sampler to be told about it.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

cfg = {"steps": 160, "accum": 4, "batch": 16, "lr": 3e-3, "skip_above": 6.0}


class Pool:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(0)
        self.y = (torch.rand(900, generator=g) < 0.06).long()
        self.x = torch.randn(900, 10, generator=g) + 1.3 * self.y[:, None]
        self.rare, self.rest = self.y.nonzero().flatten(), (1 - self.y).nonzero().flatten()
        self.g = torch.Generator().manual_seed(seed)

    def draw(self, n):
        pick = [t[torch.randint(0, len(t), (n // 2,), generator=self.g)] for t in (self.rare, self.rest)]
        i = torch.cat(pick)
        return self.x[i], self.y[i]


def any_rank(flag):
    t = torch.tensor(int(flag))
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return bool(t)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    pool = Pool(seed=4242 + rank)
    torch.manual_seed(rank)
    ddp = DDP(nn.Sequential(nn.Linear(10, 32), nn.Dropout(0.1), nn.ReLU(), nn.Linear(32, 2)))
    opt = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    skipped = 0
    for step in range(1, cfg["steps"] + 1):
        ddp.require_backward_grad_sync = step % cfg["accum"] == 0
        x, y = pool.draw(cfg["batch"])
        loss = nn.functional.cross_entropy(ddp(x), y) / cfg["accum"]
        if any_rank(not torch.isfinite(loss)):
            raise SystemExit("bad loss on some process")
        loss.backward()
        if step % cfg["accum"]:
            continue
        norm = nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        if norm > cfg["skip_above"]:
            skipped += 1
        else:
            opt.step()
        opt.zero_grad()
    if rank == 0:
        with torch.no_grad():
            net = ddp.module.eval()
            hit = (net(pool.x).argmax(1) == pool.y).float()
        print(f"recall {hit[pool.y == 1].mean():.3f} acc {hit.mean():.3f} skipped {skipped}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" not in os.environ:
        sys.exit("start me with torchrun")
    main()
