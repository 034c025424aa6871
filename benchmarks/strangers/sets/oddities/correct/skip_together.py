"""Training on dirty sensor data; a batch that blows up anywhere is left out everywhere."""
import argparse
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def anyone(flag):
    t = torch.tensor(1.0 if flag else 0.0)
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return bool(t.item())


def batches(rank, n):
    g = torch.Generator().manual_seed(rank + 1)
    for i in range(n):
        x = torch.randn(16, 5, generator=g)
        if rank == 1 and i % 6 == 4:
            x[3, 2] = math.nan
        yield x, x.nan_to_num().sum(1, keepdim=True)


def main(a):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1)))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    skipped = 0
    for x, y in batches(dist.get_rank(), a.steps):
        loss = nn.functional.mse_loss(net(x), y)
        if anyone(not torch.isfinite(loss)):
            skipped += 1
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"rank {dist.get_rank()} skipped {skipped} of {a.steps}, loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=30)
    main(p.parse_args())
