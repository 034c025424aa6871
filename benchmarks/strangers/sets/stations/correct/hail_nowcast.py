"""Adversarial nowcasting of hail cells.   torchrun --nproc_per_node 2 hail_nowcast.py"""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

HIST, LEAD, BATCH = 12, 6, 24


class Nowcaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(HIST + 4, 48), nn.LeakyReLU(0.2), nn.Linear(48, LEAD))

    def forward(self, past, z):
        return self.net(torch.cat([past, z], 1))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(HIST + LEAD, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))

    def forward(self, past, future):
        return self.net(torch.cat([past, future], 1)).squeeze(1)


class Radar:
    def __init__(self, rank):
        self.g = torch.Generator().manual_seed(rank + 5)

    def cells(self):
        phase = torch.rand(BATCH, 1, generator=self.g) * 6.28
        growth = torch.randn(BATCH, 1, generator=self.g) * 0.05
        t = torch.arange(HIST + LEAD)
        z = torch.sin(phase + 0.5 * t) * torch.exp(growth * t)
        return z[:, :HIST], z[:, HIST:]

    def noise(self):
        return torch.randn(BATCH, 4, generator=self.g)


def switch(module, on):
    for p in module.parameters():
        p.requires_grad_(on)


def critic_step(caster, critic, opt, radar):
    past, future = radar.cells()
    with torch.no_grad():
        fake = caster.module(past, radar.noise())
    opt.zero_grad()
    n = len(past)
    score = critic(torch.cat([past, past]), torch.cat([future, fake]))
    loss = torch.relu(1 - score[:n]).mean() + torch.relu(1 + score[n:]).mean()
    loss.backward()
    opt.step()
    return loss.detach()


def caster_step(caster, critic, opt, radar):
    past, future = radar.cells()
    switch(critic.module, False)
    opt.zero_grad()
    made = caster(past, radar.noise())
    loss = 10 * nn.functional.l1_loss(made, future) - critic.module(past, made).mean()
    loss.backward()
    opt.step()
    switch(critic.module, True)
    return loss.detach()


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.manual_seed(50 + rank)
    caster, critic = DDP(Nowcaster()), DDP(Critic())
    opt_g = torch.optim.Adam(caster.parameters(), lr=2e-3, betas=(0.5, 0.9))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
    radar = Radar(rank)
    for step in range(1, 31):
        for _ in range(2):
            d = critic_step(caster, critic, opt_d, radar)
        g = caster_step(caster, critic, opt_g, radar)
        if step % 10 == 0:
            both = torch.stack([d, g])
            work = dist.all_reduce(both, async_op=True)
            work.wait()
            if rank == 0:
                print(f"step {step} critic {both[0].item() / 2:.3f} caster {both[1].item() / 2:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
