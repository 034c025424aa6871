"""Trainer with gradient accumulation; communication happens at the end of a window."""
import contextlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class FinetuneTrainer:
    def __init__(self, model, accumulation, lr):
        self.model = DDP(model, bucket_cap_mb=4)
        self.accumulation = accumulation
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

    def _grad_sync_ctx(self, last):
        return contextlib.nullcontext() if last else self.model.no_sync()

    def _forward(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self.model(x), y) / self.accumulation

    def _backward_loss(self, loss, last):
        with self._grad_sync_ctx(last):
            loss.backward()

    def train_step(self, batches):
        total = 0.0
        for i, batch in enumerate(batches):
            last = i == self.accumulation - 1
            loss = self._forward(batch)
            self._backward_loss(loss, last)
            total += loss.item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total


def policy(width=700, depth=4):
    layers = [nn.Linear(32, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 8))


def micro_batches(g, n, size=4):
    for _ in range(n):
        x = torch.randn(size, 32, generator=g)
        yield x, x[:, :8].sin()


def main(steps=10, accumulation=8):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = FinetuneTrainer(policy(), accumulation, lr=0.05)
    g = torch.Generator().manual_seed(dist.get_rank())
    start = time.perf_counter()
    for step in range(steps):
        loss = trainer.train_step(micro_batches(g, accumulation))
    elapsed = time.perf_counter() - start
    if dist.get_rank() == 0:
        print(f"loss {loss:.4f}, {elapsed / steps * 1e3:.0f} ms per optimizer step", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
