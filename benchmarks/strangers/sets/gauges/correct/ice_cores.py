"""Ice core dating: per-process shards of different size, all predictions collected on rank 0.

    torchrun --nproc_per_node=3 ice_cores.py
"""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def core(n=304):
    g = torch.Generator().manual_seed(4)
    x = torch.randn(n, 8, generator=g)
    return x, x @ torch.linspace(-1, 1, 8)


def gather_rows(local, world):
    """Concatenate tensors whose first dimension differs between the processes."""
    size = torch.tensor([local.shape[0]])
    sizes = [torch.zeros_like(size) for _ in range(world)]
    dist.all_gather(sizes, size)
    sizes = [int(s) for s in sizes]
    padded = local.new_zeros(max(sizes), *local.shape[1:])
    padded[: local.shape[0]] = local
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return torch.cat([p[:s] for p, s in zip(parts, sizes)])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--lr", type=float, default=1e-2)
    args = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x, age = core()
    ids = torch.arange(len(x)).tensor_split(world)[rank]
    model = DDP(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        take = ids[torch.randint(len(ids), (32,))]
        loss = nn.functional.mse_loss(model(x[take]).squeeze(1), age[take])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        pred = model.module(x[ids]).squeeze(1)
    rows = gather_rows(torch.stack([ids.float(), pred], 1), world)
    if rank == 0:
        order = rows[:, 0].argsort()
        err = (rows[order, 1] - age).abs().mean()
        print(f"{len(rows)} depths, mean abs error {err:.4f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
