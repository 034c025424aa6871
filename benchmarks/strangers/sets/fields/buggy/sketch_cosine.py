#!/usr/bin/env python
"""Doodle classification, no-trainer style."""
import argparse
import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--num_train_epochs", type=int, default=4)
    p.add_argument("--per_device_train_batch_size", type=int, default=16)
    p.add_argument("--learning_rate", type=float, default=0.1)
    p.add_argument("--num_warmup_steps", type=int, default=4)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def cosine_with_warmup(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return step / max(1, warmup)
        progress = min(1.0, (step - warmup) / max(1, total - warmup))
        return 0.5 * (1 + math.cos(math.pi * progress))

    return LambdaLR(optimizer, factor)


def doodles(n=512, classes=6):
    proto = torch.randn(classes, 36)
    y = torch.randint(0, classes, (n,))
    return TensorDataset(proto[y] + torch.randn(n, 36), y)


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True)
    set_seed(args.seed)
    loader = DataLoader(doodles(), batch_size=args.per_device_train_batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(36, 64), nn.ReLU(), nn.Linear(64, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    max_train_steps = args.num_train_epochs * len(loader)
    lr_scheduler = cosine_with_warmup(optimizer, args.num_warmup_steps, max_train_steps)
    lr_scheduler = accelerator.prepare(lr_scheduler)

    accelerator.print(f"***** {max_train_steps} optimisation steps on {accelerator.num_processes} processes *****")
    for epoch in range(args.num_train_epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        mean = accelerator.reduce(loss.detach(), reduction="mean")
        accelerator.print(f"epoch {epoch} loss {mean.item():.4f} lr {lr_scheduler.get_last_lr()[0]:.5f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
