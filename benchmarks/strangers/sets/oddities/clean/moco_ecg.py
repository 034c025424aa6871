"""Momentum contrast on ECG strips with a long queue of negatives."""
import argparse
import copy
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def strips(batch, g, length=64):
    rate = torch.rand(batch, 1, generator=g) * 0.8 + 0.4
    t = torch.arange(length).float()
    return torch.sin(rate * t) ** 7 + 0.05 * torch.randn(batch, length, generator=g)


def augment(x, g):
    return x * (0.8 + 0.4 * torch.rand(len(x), 1, generator=g)) + 0.05 * torch.randn(x.shape, generator=g)


class Encoder(nn.Sequential):
    def __init__(self, dim):
        super().__init__(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, dim))


class MoCo(nn.Module):
    def __init__(self, dim=64, queue=160_000, sample=256, m=0.99, temp=0.1):
        super().__init__()
        self.q = Encoder(dim)
        self.k = copy.deepcopy(self.q).requires_grad_(False)
        self.m, self.temp, self.sample = m, temp, sample
        self.register_buffer("queue", F.normalize(torch.randn(queue, dim), dim=1))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def momentum(self):
        for a, b in zip(self.k.parameters(), self.q.parameters()):
            a.lerp_(b, 1 - self.m)

    @torch.no_grad()
    def push(self, keys):
        parts = [torch.empty_like(keys) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, keys)
        keys = torch.cat(parts)
        at = (int(self.ptr) + torch.arange(len(keys))) % len(self.queue)
        self.queue[at] = keys
        self.ptr.add_(len(keys))

    def forward(self, a, b):
        za = F.normalize(self.q(a), dim=1)
        with torch.no_grad():
            zb = F.normalize(self.k(b), dim=1)
        pick = torch.randint(0, len(self.queue), (self.sample,))
        neg = za @ self.queue[pick].t()
        pos = (za * zb).sum(1, keepdim=True)
        logits = torch.cat([pos, neg], 1) / self.temp
        return F.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long)), zb


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--batch", type=int, default=32)
    args = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(MoCo(), broadcast_buffers=False)
    opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
    g = torch.Generator().manual_seed(10 + dist.get_rank())
    torch.manual_seed(dist.get_rank())
    t0 = time.time()
    for step in range(args.steps):
        x = strips(args.batch, g)
        loss, keys = model(augment(x, g), augment(x, g))
        opt.zero_grad()
        loss.backward()
        opt.step()
        model.module.momentum()
        model.module.push(keys)
        if dist.get_rank() == 0 and step % 20 == 19:
            print(f"step {step + 1} loss {loss.item():.3f} {(step + 1) / (time.time() - t0):.1f} it/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
