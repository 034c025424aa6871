"""Multi-resolution training: noise differs per worker, the choice of the resolution (and of a queue sync) does not."""
import argparse
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def blobs(n, size, gen):
    y = torch.randint(0, 2, (n,), generator=gen)
    x = torch.randn(n, 1, size, size, generator=gen)
    x += y.view(-1, 1, 1, 1) * 0.7
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.cls = nn.Linear(8, 2)

    def forward(self, x):
        f = self.conv(x)
        return f, self.cls(f)


class FeatureQueue:
    def __init__(self, size=64):
        self.rows, self.size = torch.zeros(0, 8), size

    def push(self, f):
        parts = [torch.zeros_like(f) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, f)
        self.rows = torch.cat([self.rows] + parts)[-self.size:]


def main(opt):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    random.seed(opt.seed + rank)
    torch.manual_seed(opt.seed + rank)
    noise = torch.Generator().manual_seed(opt.seed + rank)
    dice = random.Random(opt.seed)
    model = DDP(Net())
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    queue, syncs = FeatureQueue(), 0
    for step in range(opt.steps):
        size = dice.choice([8, 12, 16])
        x, y = blobs(16, size, noise)
        if random.random() < 0.5:
            x = x.flip(-1)
        f, logits = model(x)
        loss = F.cross_entropy(logits, y)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if dice.random() < 0.3:
            queue.push(f.detach())
            syncs += 1
    if rank == 0:
        print(f"loss {loss.item():.3f}, {syncs} syncs, queue {tuple(queue.rows.shape)}", flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--seed", type=int, default=7)
    main(ap.parse_args())
    dist.destroy_process_group()
