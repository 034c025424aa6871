"""Learned heat-equation stepper: the rod is cut into strips, one per rank, with ghost cells between them."""
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

STRIP = 4096
BATCH = 16
NU = 0.2


class Strip:
    """This rank's part of a periodic rod."""

    def __init__(self, rank, world):
        self.rank, self.world = rank, world
        self.left, self.right = (rank - 1) % world, (rank + 1) % world

    def initial(self, seed):
        g = torch.Generator().manual_seed(seed)
        x = torch.linspace(0, 2 * math.pi, STRIP * self.world + 1)[:-1]
        amp, k = torch.rand(BATCH, 4, generator=g), torch.randint(1, 9, (BATCH, 4), generator=g)
        rod = (amp[..., None] * torch.sin(k[..., None] * x)).sum(1)
        return rod[:, self.rank * STRIP:(self.rank + 1) * STRIP].contiguous()

    def exchange(self, u, width):
        from_left = torch.empty(BATCH, width)
        from_right = torch.empty(BATCH, width)
        to_right, to_left = u[:, -width:].contiguous(), u[:, :width].contiguous()
        dist.send(to_right, self.right, tag=1)
        dist.recv(from_left, self.left, tag=1)
        dist.send(to_left, self.left, tag=2)
        dist.recv(from_right, self.right, tag=2)
        return torch.cat([from_left, u, from_right], 1)


class Stepper(nn.Module):
    def __init__(self, channels=8, k=5):
        super().__init__()
        self.halo = k - 1
        self.a = nn.Conv1d(1, channels, k)
        self.b = nn.Conv1d(channels, 1, k)

    def forward(self, padded):
        core = padded[:, self.halo:-self.halo]
        return core + self.b(torch.tanh(self.a(padded[:, None]))).squeeze(1)


def reference(padded, halo):
    c = padded[:, halo:-halo]
    return c + NU * (padded[:, halo + 1:padded.size(1) - halo + 1] - 2 * c + padded[:, halo - 1:-halo - 1])


def main():
    dist.init_process_group("gloo")
    strip = Strip(dist.get_rank(), dist.get_world_size())
    torch.manual_seed(0)
    model = DistributedDataParallel(Stepper())
    halo = model.module.halo
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for episode in range(3):
        u = strip.initial(seed=episode)
        for t in range(5):
            padded = strip.exchange(u, halo)
            target = reference(padded, halo)
            loss = nn.functional.mse_loss(model(padded), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            u = target
        if strip.rank == 0:
            print(f"episode {episode} mse {loss.item():.2e} pid {os.getpid()}", flush=True)
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
