"""Daily pollen counts from weather series, with Accelerate.

    torchrun --nproc_per_node=2 pollen_count.py --epochs 4 --warmup 0.1
"""
import argparse
import math

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def seasons(n=640):
    g = torch.Generator().manual_seed(10)
    x = torch.randn(n, 21, 5, generator=g)
    y = torch.relu(x[:, -5:, 0].mean(1) + 0.5 * x[:, -1, 1]).log1p()
    return TensorDataset(x, y)


class Recurrent(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(5, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.out(h[-1]).squeeze(-1)


def cosine_with_warmup(optimizer, warmup_steps, total_steps):
    def factor(step):
        if step < warmup_steps:
            return (step + 1) / max(1, warmup_steps)
        progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
        return 0.5 * (1 + math.cos(math.pi * progress))

    return LambdaLR(optimizer, factor)


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--warmup", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=21)
    return p.parse_args()


def main(accelerator, args):
    set_seed(args.seed)

    model = Recurrent()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loader = DataLoader(seasons(), batch_size=args.batch, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    total_steps = args.epochs * len(loader)
    scheduler = cosine_with_warmup(optimizer, int(args.warmup * total_steps), total_steps)
    scheduler = accelerator.prepare(scheduler)

    step = 0
    for epoch in range(args.epochs):
        model.train()
        running = torch.zeros(())
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            running += loss.detach()
            step += 1
        mean = accelerator.reduce(running / len(loader), reduction="mean")
        accelerator.print(f"epoch {epoch} step {step}/{total_steps} mse {mean.item():.4f} lr {scheduler.get_last_lr()[0]:.2e}")
    accelerator.wait_for_everyone()


if __name__ == "__main__":
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True)
    main(acc, get_args())
    acc.end_training()
