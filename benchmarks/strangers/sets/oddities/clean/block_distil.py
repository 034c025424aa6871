"""Block-wise distillation: each student block learns to copy the teacher block at the same depth."""
import argparse
import time
from dataclasses import dataclass, field
from typing import Dict, List

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class LocalStats:
    step: int
    token_losses: Dict[str, List[float]] = field(default_factory=dict)


def blocks(n, dim, hidden):
    return nn.ModuleList(nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)) for _ in range(n))


class Stitched(nn.Module):
    def __init__(self, n=6, dim=16):
        super().__init__()
        self.teacher = blocks(n, dim, 12).requires_grad_(False)
        self.student = blocks(n, dim, 8)

    def forward(self, x):
        errors = {}
        for i, (t, s) in enumerate(zip(self.teacher, self.student)):
            with torch.no_grad():
                y = x + t(x)
            errors[f"block{i}"] = (x + s(x) - y).square().mean(-1)
            x = y
        return errors


class StatsBook:
    def __init__(self, log_every):
        self.log_every = log_every
        self.worst = {}

    def collect(self, step, errors):
        if step % self.log_every:
            return
        stats = LocalStats(step, {k: e.detach().flatten().tolist() for k, e in errors.items()})
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, stats)
        for name in errors:
            values = [v for s in everyone for v in s.token_losses[name]]
            self.worst[name] = max(values)
            mean = sum(values) / len(values)
            if dist.get_rank() == 0:
                print(f"step {step} {name}: mean {mean:.4f} worst {self.worst[name]:.4f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--log-every", type=int, default=50)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--tokens", type=int, default=256)
    args = p.parse_args()

    dist.init_process_group("gloo")
    torch.manual_seed(9)
    model = DDP(Stitched())
    opt = torch.optim.AdamW([q for q in model.parameters() if q.requires_grad], lr=3e-3)
    book = StatsBook(args.log_every)
    g = torch.Generator().manual_seed(dist.get_rank())
    t0 = time.perf_counter()
    for step in range(1, args.steps + 1):
        x = torch.randn(args.batch, args.tokens, 16, generator=g)
        errors = model(x)
        loss = sum(e.mean() for e in errors.values())
        opt.zero_grad()
        loss.backward()
        opt.step()
        book.collect(step, errors)
    if dist.get_rank() == 0:
        print(f"{args.steps / (time.perf_counter() - t0):.1f} steps/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
