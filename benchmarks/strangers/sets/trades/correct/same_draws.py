"""Multi-scale training with layer dropping.

Size and kept layers of a step are the same everywhere, so that the processes
have equal work and use the same parameters; the crops and the noise are not.
"""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

SIZES = (8, 12, 16)


class Branchy(nn.Module):
    def __init__(self, width=12, depth=3):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.fc = nn.Linear(width, 2)

    def forward(self, x, keep):
        h = F.relu(self.stem(x))
        for use, block in zip(keep, self.blocks):
            if use:
                h = h + F.relu(block(h))
        return self.fc(h.mean((2, 3)))


def images(n, g, noise_g):
    y = torch.randint(0, 2, (n,), generator=g)
    t = torch.arange(20).float()
    wave = torch.sin(t * 1.5)
    flat = wave[None, :].expand(20, 20)
    x = torch.stack([flat if k else flat.T for k in y.tolist()])
    return x[:, None] + 0.5 * torch.randn(n, 1, 20, 20, generator=noise_g), y


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    shared = random.Random(123)             # on purpose without the rank
    local = random.Random(1000 + rank)
    data_g = torch.Generator().manual_seed(5000 + rank)
    noise_g = torch.Generator().manual_seed(9000 + rank)
    torch.manual_seed(0)

    model = DDP(Branchy(), find_unused_parameters=True)
    opt = torch.optim.AdamW(model.parameters(), lr=4e-3)

    for step in range(40):
        size = shared.choice(SIZES)
        keep = [shared.random() < 0.7 for _ in range(3)]
        x, y = images(16, data_g, noise_g)
        r, c = local.randint(0, 20 - size), local.randint(0, 20 - size)
        loss = F.cross_entropy(model(x[:, :, r:r + size, c:c + size], keep), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step} size {size} loss {mean.item() / dist.get_world_size():.3f}", flush=True)

    x, y = images(100, data_g, noise_g)
    with torch.no_grad():
        hit = (model.module(x, [True] * 3).argmax(1) == y).float().mean().reshape(1)
    dist.all_reduce(hit)
    if rank == 0:
        print(f"accuracy {hit.item() / dist.get_world_size():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
