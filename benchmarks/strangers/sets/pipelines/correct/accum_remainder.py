import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def micro_batches(rank, n=11):
    for i in range(n):
        g = torch.Generator().manual_seed(1000 * rank + i)
        x = torch.randn(8, 5, generator=g)
        yield x, (x ** 2).sum(1, keepdim=True)


def main(accum=4):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    updates = 0
    for epoch in range(3):
        batches = list(micro_batches(rank))
        for i, (x, y) in enumerate(batches):
            last = i + 1 == len(batches)
            boundary = (i + 1) % accum == 0 or last
            group = len(batches) % accum if i >= len(batches) // accum * accum else accum
            with contextlib.nullcontext() if boundary else model.no_sync():
                loss = nn.functional.mse_loss(model(x), y) / group
                loss.backward()
            if boundary:
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                opt.step()
                opt.zero_grad()
                updates += 1
    s = sum(p.detach().double().sum() for p in model.parameters()).item()
    print(f"rank {rank} updates {updates} checksum {s:.6f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
