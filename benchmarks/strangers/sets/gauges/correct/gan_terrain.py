"""Adversarial synthesis of terrain profiles: two networks, two wrappers.

    torchrun --nproc_per_node=2 gan_terrain.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

LATENT, LENGTH = 8, 32


def profiles(n, generator):
    slope = torch.randn(n, 1, generator=generator)
    t = torch.linspace(-1, 1, LENGTH)
    return slope * t + 0.3 * torch.sin(9 * t + slope)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, 48), nn.LeakyReLU(0.2), nn.Linear(48, LENGTH))

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LENGTH, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x)


def adversarial(logits, real):
    target = torch.ones_like(logits) if real else torch.zeros_like(logits)
    return nn.functional.binary_cross_entropy_with_logits(logits, target)


def train(steps=60, batch=32):
    rank = dist.get_rank()
    data_rng = torch.Generator().manual_seed(500 + rank)
    gen, critic = DDP(Generator()), DDP(Critic())
    opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    for step in range(steps):
        real = profiles(batch, data_rng)
        with torch.no_grad():
            fake = gen.module(torch.randn(batch, LATENT, generator=data_rng))
        both = critic(torch.cat([real, fake]))
        loss_c = adversarial(both[:batch], True) + adversarial(both[batch:], False)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()

        # the critic only passes the signal on here
        z = torch.randn(batch, LATENT, generator=data_rng)
        loss_g = adversarial(critic.module(gen(z)), True)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if rank == 0 and step % 20 == 19:
            print(f"step {step} critic {loss_c.item():.3f} generator {loss_g.item():.3f}")
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    train()
    dist.destroy_process_group()
