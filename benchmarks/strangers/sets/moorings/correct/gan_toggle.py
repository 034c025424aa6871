"""Two-dimensional GAN with two wrapped networks; the critic is frozen and unwrapped in the generator's step."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, o))


def set_requires_grad(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


class GanTrainer:
    def __init__(self, rank, d_steps=2):
        torch.manual_seed(0)
        self.netG, self.netD = DDP(mlp(4, 2)), DDP(mlp(2, 1))
        self.optG = torch.optim.Adam(self.netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.optD = torch.optim.Adam(self.netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.gen = torch.Generator().manual_seed(rank)
        self.d_steps = d_steps

    def real(self, n=32):
        a = torch.rand(n, 1, generator=self.gen) * 6.28
        return torch.cat([a.cos(), a.sin()], 1) + 0.05 * torch.randn(n, 2, generator=self.gen)

    def noise(self, n=32):
        return torch.randn(n, 4, generator=self.gen)

    def d_step(self):
        with torch.no_grad():
            fake = self.netG.module(self.noise())
        real_out, fake_out = self.netD(torch.cat([self.real(), fake])).chunk(2)
        loss = F.relu(1 - real_out).mean() + F.relu(1 + fake_out).mean()
        self.optD.zero_grad()
        loss.backward()
        self.optD.step()
        return loss.item()

    def g_step(self):
        set_requires_grad(self.netD, False)
        loss = -self.netD.module(self.netG(self.noise())).mean()
        self.optG.zero_grad()
        loss.backward()
        self.optG.step()
        set_requires_grad(self.netD, True)
        return loss.item()


def main():
    rank = int(os.environ["RANK"])
    trainer = GanTrainer(rank)
    for it in range(30):
        for _ in range(trainer.d_steps):
            d = trainer.d_step()
        g = trainer.g_step()
        if rank == 0 and it % 10 == 9:
            print(f"{it} D {d:.3f} G {g:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
