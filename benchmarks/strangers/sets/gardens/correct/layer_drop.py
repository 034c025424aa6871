"""Speech encoder with whole layers left out at random during training."""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Encoder(nn.Module):
    def __init__(self, width=32, depth=5, classes=4):
        super().__init__()
        self.front = nn.Linear(12, width)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.out = nn.Linear(width, classes)

    def forward(self, x, keep):
        h = self.front(x)
        for use, layer in zip(keep, self.layers):
            if use:
                h = h + layer(h)
        return self.out(h.mean(1))


class KeepPlan:
    def __init__(self, depth, rate, seed):
        self.depth, self.rate = depth, rate
        self.dice = random.Random(seed)

    def draw(self):
        return [self.dice.random() >= self.rate for _ in range(self.depth)]


def clips(g, n=24):
    y = torch.randint(0, 4, (n,), generator=g)
    x = torch.randn(n, 10, 12, generator=g)
    x[torch.arange(n), :, y * 3] += 1.0
    return x, y


def main(depth=5, steps=80):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(2)
    net = DDP(Encoder(depth=depth), find_unused_parameters=True)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    plan = KeepPlan(depth, 0.3, seed=50)
    own = torch.Generator().manual_seed(70 + rank)
    for step in range(steps):
        x, y = clips(own)
        loss = nn.functional.cross_entropy(net(x, plan.draw()), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 19:
            m = loss.detach().clone()
            dist.all_reduce(m)
            if rank == 0:
                print(f"step {step + 1} loss {m.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
