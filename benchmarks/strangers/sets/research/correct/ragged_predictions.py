"""Evaluation of ragged outputs: each rank has another number of predictions; sizes first, then padded tensors."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def gather_ragged(rows):
    """rows: (n_i, k) with n_i different on every rank -> (sum n_i, k) on all ranks"""
    world = dist.get_world_size()
    sizes = [torch.zeros(1, dtype=torch.long) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor([len(rows)]))
    longest = int(max(sizes))
    if longest == 0:
        return rows
    padded = torch.zeros(longest, rows.shape[1])
    padded[:len(rows)] = rows
    parts = [torch.zeros_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return torch.cat([p[:int(n)] for p, n in zip(parts, sizes)])


def tracks(rank):
    g = torch.Generator().manual_seed(60 + rank)
    return torch.randn(5 + 3 * rank, 4, generator=g)


def fit_and_score(rank):
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    g = torch.Generator().manual_seed(rank)
    for _ in range(20):
        x = torch.randn(16, 4, generator=g)
        opt.zero_grad()
        nn.functional.mse_loss(model(x), x.mean(1, keepdim=True)).backward()
        opt.step()
    mine = tracks(rank)
    with torch.no_grad():
        score = model.module(mine)
    kept = torch.cat([mine, score], 1)[score[:, 0] > 0]
    everyone = gather_ragged(kept)
    if rank == 0:
        print(f"{len(everyone)} tracks kept, best score {everyone[:, -1].max():.3f}", flush=True)


def worker(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29931")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    fit_and_score(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(3,), nprocs=3)
