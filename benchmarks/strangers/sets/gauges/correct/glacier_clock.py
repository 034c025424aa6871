"""Glacier mass balance under a queue time limit: snapshots and the end of the run go by the clock.

    torchrun --nproc_per_node=2 glacier_clock.py --limit 4
"""
import argparse
import io
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

GO, SNAPSHOT, END = "go", "snapshot", "end"


class Clock:
    """The clock of process 0 counts."""

    def __init__(self, limit, every):
        self.begin = self.last = time.monotonic()
        self.limit, self.every = limit, every

    def ask(self):
        if dist.get_rank() == 0:
            now = time.monotonic()
            word = GO
            if now - self.begin > self.limit:
                word = END
            elif now - self.last > self.every:
                word, self.last = SNAPSHOT, now
            box = [word]
            dist.broadcast_object_list(box, src=0)
        else:
            box = [None]
            dist.broadcast_object_list(box, src=0)
        return box[0]


def glaciers(n=256):
    g = torch.Generator().manual_seed(71)
    climate = torch.randn(n, 12, 2, generator=g)
    balance = climate[:, :, 1].clamp(min=0).sum(1) * 0.2 - climate[:, 4:9, 0].clamp(min=0).sum(1) * 0.3
    return climate.flatten(1), balance


def snapshot(model, rng_state):
    """Random states of all processes go into the snapshot."""
    states = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(rng_state, states, dst=0)
    if dist.get_rank() != 0:
        return 0
    buf = io.BytesIO()
    torch.save({"model": model.module.state_dict(), "rng": states}, buf)
    return buf.tell()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--limit", type=float, default=3.0)
    p.add_argument("--every", type=float, default=0.7)
    a = p.parse_args()
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    x, y = (t[rank::world] for t in glaciers())
    model = DDP(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock, step = Clock(a.limit, a.every), 0
    while True:
        take = torch.randint(len(x), (16,))
        loss = nn.functional.mse_loss(model(x[take]).squeeze(1), y[take])
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
        time.sleep(0.01 * (1 + rank))
        word = clock.ask()
        if word == END:
            break
        if word == SNAPSHOT:
            size = snapshot(model, torch.get_rng_state())
            if rank == 0:
                print(f"step {step} snapshot of {size} bytes, mse {loss.item():.4f}", flush=True)
    if rank == 0:
        print(f"time is up after {step} steps")
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
