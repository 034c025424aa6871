"""Every process draws its own noise, all of them share the split."""
import os
import random
from types import SimpleNamespace

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

cfg = SimpleNamespace(seed=3, n=120, holdout=24, epochs=4, batch=12)


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def data():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(cfg.n, 8)).astype("float32"))
    return TensorDataset(torch.arange(cfg.n), x, x.sum(1, keepdim=True).sin())


def main():
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    seed_all(cfg.seed * 100 + rank)
    train, val = random_split(data(), [cfg.n - cfg.holdout, cfg.holdout], torch.Generator().manual_seed(cfg.seed))
    sampler = DistributedSampler(train, seed=cfg.seed)
    loader = DataLoader(train, cfg.batch, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1)))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for _, x, y in loader:
            noisy = x + 0.05 * torch.randn_like(x)
            loss = nn.functional.mse_loss(model(noisy), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
    if rank == 0:
        model.module.eval()
        ids, x, y = next(iter(DataLoader(val, cfg.holdout)))
        with torch.no_grad():
            err = nn.functional.mse_loss(model.module(x), y).item()
        print(f"held-out error {err:.4f}, frames {sorted(ids.tolist())[:6]}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
