"""Adapter training for a latent video model, with warmup and cosine decay."""
import argparse
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def cosine_with_warmup(warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step - warmup) / max(1, total - warmup))
        return 0.5 * (1 + math.cos(math.pi * done))
    return factor


def latents(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    clean = torch.randn(n, 4, 8, generator=g).cumsum(1) / 2
    return TensorDataset(clean.flatten(1), torch.rand(n, 1, generator=g))


class Velocity(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 64), nn.SiLU(), nn.Linear(64, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def build_optimization(model, dataset, args):
    steps_per_epoch = math.ceil(len(dataset) / args.train_batch_size)
    total = args.num_train_epochs * steps_per_epoch
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, cosine_with_warmup(int(args.warmup_ratio * total), total))
    return optimizer, schedule


def train(args):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    dataset = latents(args.samples)
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, seed=args.seed, drop_last=True)
    loader = DataLoader(dataset, batch_size=args.train_batch_size, sampler=sampler, drop_last=True)
    model = DDP(Velocity())
    optimizer, schedule = build_optimization(model.module, dataset, args)
    noise_gen = torch.Generator().manual_seed(args.seed + 17 + rank)
    for epoch in range(args.num_train_epochs):
        sampler.set_epoch(epoch)
        for x0, t in loader:
            noise = torch.randn(x0.shape, generator=noise_gen)
            pred = model((1 - t) * x0 + t * noise, t)
            loss = nn.functional.mse_loss(pred, noise - x0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        if rank == 0:
            print(f"epoch {epoch} lr {schedule.get_last_lr()[0]:.2e}", flush=True)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--samples", type=int, default=128)
    p.add_argument("--train-batch-size", type=int, default=8, help="per device")
    p.add_argument("--num-train-epochs", type=int, default=4)
    p.add_argument("--learning-rate", type=float, default=2e-3)
    p.add_argument("--warmup-ratio", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(parse())
    dist.destroy_process_group()
