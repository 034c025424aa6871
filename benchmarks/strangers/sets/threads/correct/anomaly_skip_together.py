"""Sensor regression where broken batches are skipped, by agreement of all ranks."""
import argparse
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Gate:
    """One rank's trouble is everybody's decision; the clock of rank 0 counts for all."""

    def __init__(self, budget):
        self.deadline = time.monotonic() + budget
        self.skipped = 0

    def anyone(self, flag):
        t = torch.tensor(int(flag))
        dist.all_reduce(t, op=dist.ReduceOp.MAX)
        return bool(t.item())

    def out_of_time(self):
        t = torch.tensor([time.monotonic() > self.deadline], dtype=torch.uint8)
        dist.broadcast(t, src=0)
        return bool(t)


class SensorFeed:
    """Rank 1's hardware drops out now and then and delivers NaN."""

    def __init__(self, rank):
        self.rank = rank
        self.g = torch.Generator().manual_seed(rank * 17 + 3)

    def __call__(self, step):
        x = torch.randn(32, 9, generator=self.g)
        y = x[:, :3].prod(1) + x[:, 3]
        if self.rank == 1 and step % 7 == 5:
            x[4, 2] = float("nan")
        return x, y


def main(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(9, 64), nn.Mish(), nn.Linear(64, 1)))
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    feed, gate = SensorFeed(rank), Gate(args.seconds)
    for step in range(args.steps):
        x, y = feed(step)
        loss = (model(x).squeeze(1) - y).pow(2).mean()
        if gate.anyone(not torch.isfinite(loss)):
            gate.skipped += 1
            continue
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if rank == 0 and step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.3f} norm {norm.item():.2f} skipped {gate.skipped}", flush=True)
        if step % 10 == 9 and gate.out_of_time():
            break
    if rank == 0:
        print("done", flush=True)
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--seconds", type=float, default=120.0)
    p.add_argument("--lr", type=float, default=3e-3)
    main(p.parse_args())
