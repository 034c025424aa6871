"""Downscaling of temperature fields with an adversarial term."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def fields(n, g):
    coarse = torch.randn(n, 1, 6, 6, generator=g)
    fine = F.interpolate(coarse, scale_factor=2, mode="bilinear", align_corners=False)
    return coarse, fine + 0.3 * torch.randn(fine.shape, generator=g)


class Downscaler(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(2, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, 4, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, coarse, noise):
        return self.net(torch.cat([coarse, noise], 1))


class Critic(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(width * 36, 1))

    def forward(self, fine):
        return self.net(fine).squeeze(1)


class AdversarialStepper:
    def __init__(self, adversarial_weight=0.1, lr=1e-3):
        self.gen = DDP(Downscaler())
        self.disc = DDP(Critic())
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=lr, betas=(0.5, 0.9))
        self.opt_d = torch.optim.Adam(self.disc.parameters(), lr=lr, betas=(0.5, 0.9))
        self.weight = adversarial_weight

    def train_on_batch(self, coarse, fine, noise):
        fake = self.gen(coarse, noise)
        g_loss = F.mse_loss(fake, fine) - self.weight * self.disc(fake).mean()
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()

        real_score = self.disc(fine)
        fake_score = self.disc(fake.detach())
        d_loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()
        return g_loss.item(), d_loss.item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    stepper = AdversarialStepper()
    g = torch.Generator().manual_seed(40 + rank)
    for step in range(120):
        coarse, fine = fields(8, g)
        noise = torch.randn(coarse.shape, generator=g)
        g_loss, d_loss = stepper.train_on_batch(coarse, fine, noise)
        if rank == 0 and step % 20 == 0:
            print(f"{step:4d} generator {g_loss:.3f} critic {d_loss:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
