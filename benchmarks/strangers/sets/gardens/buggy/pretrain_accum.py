import argparse
import contextlib
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class MaskedEncoder(nn.Module):
    def __init__(self, width, depth, n_in=64):
        super().__init__()
        self.inp = nn.Linear(n_in, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, n_in)

    def forward(self, x):
        h = self.inp(x)
        for layer in self.layers:
            h = h + torch.relu(layer(h))
        return self.out(h)


class Objective(nn.Module):
    """Masks entries of the input and scores their reconstruction."""

    def __init__(self, encoder, ratio=0.3):
        super().__init__()
        self.encoder, self.ratio = encoder, ratio

    def forward(self, x):
        mask = (torch.rand_like(x) < self.ratio).float()
        guess = self.encoder(x * (1 - mask))
        return ((guess - x).pow(2) * mask).sum() / mask.sum().clamp_min(1)


class Pretrainer:
    def __init__(self, a):
        self.a = a
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(a.seed)
        encoder = DDP(MaskedEncoder(a.width, a.depth))
        self.model = Objective(encoder)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=a.lr)
        self.noise = torch.Generator().manual_seed(a.seed + 1 + self.rank)
        torch.manual_seed(a.seed + 100 + self.rank)
        self.basis = torch.randn(8, 64, generator=torch.Generator().manual_seed(a.seed))

    def micro_batch(self):
        z = torch.randn(self.a.micro, 8, generator=self.noise)
        return z @ self.basis

    def quiet(self, last):
        if last or not hasattr(self.model, "no_sync"):
            return contextlib.nullcontext()
        return self.model.no_sync()

    def update(self):
        total = 0.0
        self.opt.zero_grad(set_to_none=True)
        for k in range(self.a.accum):
            with self.quiet(last=k == self.a.accum - 1):
                loss = self.model(self.micro_batch()) / self.a.accum
                loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        return total

    def run(self):
        tick = time.perf_counter()
        for step in range(1, self.a.steps + 1):
            loss = self.update()
            if step % 4 == 0:
                shown = torch.tensor(loss)
                dist.all_reduce(shown)
                if self.rank == 0:
                    took = time.perf_counter() - tick
                    print(f"step {step} loss {shown.item() / self.world:.4f} {took:.2f}s", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--width", type=int, default=512)
    p.add_argument("--depth", type=int, default=4)
    p.add_argument("--micro", type=int, default=4)
    p.add_argument("--accum", type=int, default=16)
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--lr", type=float, default=5e-4)
    p.add_argument("--seed", type=int, default=40)
    args = p.parse_args()
    dist.init_process_group("gloo")
    Pretrainer(args).run()
    dist.destroy_process_group()
