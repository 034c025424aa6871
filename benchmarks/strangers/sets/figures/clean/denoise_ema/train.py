"""Denoising autoencoder with EMA weights."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ema import EMA


def build_data(n=512, d=24):
    g = torch.Generator().manual_seed(4)
    return TensorDataset(torch.randn(n, 6, generator=g) @ torch.randn(6, d, generator=g))


def build_model(d=24):
    return nn.Sequential(nn.Linear(d, 64), nn.SiLU(), nn.Linear(64, d))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--ema-beta", type=float, default=0.95)
    ap.add_argument("--update-model-with-ema-every", type=int, default=20)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    is_main = rank == 0
    torch.manual_seed(rank)
    data = build_data()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, args.batch, sampler=sampler)
    model = DDP(build_model())
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)

    ema = EMA(model.module, beta=args.ema_beta, update_model_with_ema_every=args.update_model_with_ema_every)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for (x,) in loader:
            noisy = x + 0.5 * torch.randn_like(x)
            loss = nn.functional.mse_loss(model(noisy), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update()
            total += loss.item()
        if is_main:
            print(f"epoch {epoch} mse {total / len(loader):.4f}")
    if is_main:
        torch.save({"model": model.module.state_dict(), "ema": ema.ema_model.state_dict()}, "denoise.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
