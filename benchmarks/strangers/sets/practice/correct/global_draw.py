"""Every process draws the whole global batch from the same stream and keeps its slice,
so that the run does not depend on the number of processes."""
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn


@dataclass(frozen=True)
class Setup:
    seed: int = 0
    global_batch: int = 64
    steps: int = 50
    lr: float = 1e-2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 32), nn.Linear(32, 2)

    def forward(self, x, t):
        return self.b(self.a(torch.cat([x, t], 1)).relu())


def draw(gen, n):
    x0 = torch.randn(n, 2, generator=gen) * torch.tensor([1.0, 0.2])
    t = torch.rand(n, 1, generator=gen)
    eps = torch.randn(n, 2, generator=gen)
    return x0, t, eps


def main(s=Setup()):
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    assert s.global_batch % world == 0
    torch.manual_seed(s.seed)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=s.lr)
    gen = torch.Generator().manual_seed(s.seed)
    per = s.global_batch // world
    for step in range(s.steps):
        x0, t, eps = (v[rank * per:(rank + 1) * per] for v in draw(gen, s.global_batch))
        pred = net((1 - t) * x0 + t * eps, t)
        loss = (pred - (eps - x0)).square().sum() / (2 * s.global_batch)
        opt.zero_grad()
        loss.backward()
        grads = torch.cat([p.grad.flatten() for p in net.parameters()])
        dist.all_reduce(grads)
        at = 0
        for p in net.parameters():
            p.grad.copy_(grads[at:at + p.numel()].view_as(p))
            at += p.numel()
        opt.step()
        value = loss.detach().clone()
        dist.reduce(value, dst=0)
        if rank == 0 and step % 10 == 0:
            print(f"{step:3d} {value.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
