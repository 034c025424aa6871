"""Behaviour cloning of a tiny vision-action policy with micro-batches."""
import contextlib
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


class Policy(nn.Module):
    def __init__(self, width=640):
        super().__init__()
        self.vision = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(width))
        self.state = nn.Linear(7, width)
        self.trunk = nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(width, width), nn.SiLU())])
        self.action = nn.Linear(width, 7)

    def forward(self, image, state):
        return self.action(self.trunk(self.vision(image) + self.state(state)))


class TrainerBase:
    def fetch(self): raise NotImplementedError
    def compute_loss(self, batch): raise NotImplementedError

    def after_step(self, step, loss):
        pass


class AccumulationMixin:
    accumulate = 4

    def sync_context(self, last):
        return contextlib.nullcontext() if last else self.model.no_sync()

    def backward_loss(self, loss):
        (loss / self.accumulate).backward()

    def train_step(self):
        self.optim.zero_grad(set_to_none=True)
        total = 0.0
        for i in range(self.accumulate):
            last = i + 1 == self.accumulate
            with self.sync_context(last):
                loss = self.compute_loss(self.fetch())
                self.backward_loss(loss)
            total += loss.item()
        self.optim.step()
        return total / self.accumulate


class ClockMixin:
    def start_clock(self):
        self.began = time.perf_counter()

    def after_step(self, step, loss):
        if self.rank == 0 and step % 5 == 0:
            rate = step / (time.perf_counter() - self.began)
            print(f"step {step} loss {loss:.4f} ({rate:.2f} it/s)", flush=True)


class CloningTrainer(AccumulationMixin, ClockMixin, TrainerBase):
    def __init__(self, steps, batch=4):
        self.rank = dist.get_rank()
        self.steps, self.batch = steps, batch
        torch.manual_seed(0)
        policy = Policy()
        policy(torch.zeros(1, 3, 32, 32), torch.zeros(1, 7))
        self.model = DistributedDataParallel(policy, gradient_as_bucket_view=True)
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.episodes = self.expert()

    def expert(self) -> Iterator[tuple]:
        g = torch.Generator().manual_seed(70 + self.rank)
        mix = torch.randn(7, 7, generator=torch.Generator().manual_seed(1)) / 3
        while True:
            image = torch.rand(self.batch, 3, 32, 32, generator=g)
            state = torch.randn(self.batch, 7, generator=g)
            yield image, state, state @ mix + image.mean((1, 2, 3))[:, None]

    def fetch(self):
        return next(self.episodes)

    def compute_loss(self, batch):
        image, state, action = batch
        return nn.functional.smooth_l1_loss(self.model(image, state), action)

    def run(self):
        self.start_clock()
        for step in range(1, self.steps + 1):
            self.after_step(step, self.train_step())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    CloningTrainer(steps=15).run()
    dist.barrier()
    dist.destroy_process_group()
