"""Meters are reduced in the background: the handles of one step are waited for when the next line is logged."""
import os
from collections import deque

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class AsyncMeter:
    def __init__(self):
        self.pending = deque()

    def push(self, **values):
        names = sorted(values)
        t = torch.tensor([float(values[n]) for n in names])
        work = dist.all_reduce(t, async_op=True)
        self.pending.append((work, names, t))

    def drain(self):
        sums, count = {}, 0
        while self.pending:
            work, names, t = self.pending.popleft()
            work.wait()
            for n, v in zip(names, t.tolist()):
                sums[n] = sums.get(n, 0.0) + v / dist.get_world_size()
            count += 1
        return {n: v / count for n, v in sums.items()}


def taxi(n, gen):
    x = torch.rand(n, 6, generator=gen)
    return x, 2 + 3 * (x[:, 0] - x[:, 2]).abs() + x[:, 5]


def main(steps=80, log_every=20):
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(70 + rank)
    meter = AsyncMeter()
    for step in range(1, steps + 1):
        x, fare = taxi(32, gen)
        out = model(x).squeeze(1)
        loss = nn.functional.huber_loss(out, fare)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.push(loss=loss.item(), mae=(out - fare).abs().mean().item())
        if step % log_every == 0:
            values = meter.drain()
            if rank == 0:
                print(step, {k: round(v, 4) for k, v in values.items()}, flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
