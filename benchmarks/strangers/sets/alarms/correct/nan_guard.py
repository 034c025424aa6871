"""Bad batches are left out, together."""
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def anywhere(flag):
    t = torch.tensor(int(flag))
    dist.all_reduce(t, op=dist.ReduceOp.MAX)
    return t.item() > 0


def stream(rank, n):
    g = torch.Generator().manual_seed(rank)
    for i in range(n):
        x = torch.randn(8, 9, generator=g)
        if i % (4 + rank) == 3:
            x[0, 0] = math.nan
        yield x


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(9, 18), nn.ELU(), nn.Linear(18, 9)))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    skipped = own = 0
    for x in stream(rank, 24):
        bad = not torch.isfinite(x).all()
        own += int(bad)
        if anywhere(bad):
            skipped += 1
            continue
        loss = (model(x) - x.flip(1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if loss.item() > 1e4 and rank == 0:
            print("warning: large loss", flush=True)
    print(f"rank {rank}: {own} bad here, {skipped} skipped everywhere, loss {loss.item():.4f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
