"""Throughput of a CPU training job with one process per core block.

On our nodes the scheduler moves processes between sockets, so every process is
pinned to its own block of cores at the start.

    torchrun --nproc_per_node 2 numa_bench.py
"""
import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class BenchConfig:
    dim: int = 256
    depth: int = 3
    batch_size: int = 64
    steps: int = 40
    warmup: int = 5
    lr: float = 1e-3


def local_id():
    """Index of this process on the node."""
    return int(os.environ.get("SLURM_LOCALID", 0))


def pin_to_cores(local_world):
    cores = sorted(os.sched_getaffinity(0))
    per_proc = max(1, len(cores) // local_world)
    start = (local_id() * per_proc) % len(cores)
    block = cores[start:start + per_proc]
    os.sched_setaffinity(0, block)
    torch.set_num_threads(len(block))
    return block


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def build(cfg):
    return nn.Sequential(*[Residual(cfg.dim) for _ in range(cfg.depth)], nn.Linear(cfg.dim, 1))


class Meter:
    def __init__(self, warmup):
        self.warmup, self.seen, self.rows, self.t0 = warmup, 0, 0, None

    def tick(self, n):
        self.seen += 1
        if self.seen == self.warmup:
            self.t0 = time.perf_counter()
        elif self.seen > self.warmup:
            self.rows += n

    def rate(self):
        return self.rows / (time.perf_counter() - self.t0)


def main():
    cfg = BenchConfig()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    block = pin_to_cores(int(os.environ.get("LOCAL_WORLD_SIZE", world)))

    torch.manual_seed(1)
    model = DDP(build(cfg))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(77 + rank)
    target = torch.randn(cfg.dim, 1, generator=torch.Generator().manual_seed(3)) / cfg.dim ** 0.5
    meter = Meter(cfg.warmup)

    for step in range(cfg.steps):
        x = torch.randn(cfg.batch_size, cfg.dim, generator=gen)
        loss = nn.functional.mse_loss(model(x), torch.tanh(x @ target))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        meter.tick(cfg.batch_size)
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)

    rate = torch.tensor([meter.rate()])
    dist.all_reduce(rate)
    if rank == 0:
        print(f"{world} processes with {len(block)} core(s) each: {rate.item():.0f} rows/s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
