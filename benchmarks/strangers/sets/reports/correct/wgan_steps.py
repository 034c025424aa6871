"""Wasserstein GAN with several critic steps and a gradient penalty, different seeds everywhere.

    torchrun --nproc_per_node=2 wgan_steps.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def mlp(i, o, norm):
    layers = [nn.Linear(i, 48), nn.BatchNorm1d(48) if norm else nn.Identity(), nn.LeakyReLU(0.2), nn.Linear(48, o)]
    return nn.Sequential(*layers)


class Critic(nn.Module):
    """forward() does everything of one critic step, so the penalty is seen by DDP too."""

    def __init__(self):
        super().__init__()
        self.net = mlp(2, 1, norm=False)

    def forward(self, real, fake, mix):
        between = (mix * real + (1 - mix) * fake).requires_grad_(True)
        grad, = torch.autograd.grad(self.net(between).sum(), between, create_graph=True)
        penalty = (grad.norm(dim=1) - 1).pow(2).mean()
        return self.net(fake).mean() - self.net(real).mean() + 10 * penalty


class WGAN:
    def __init__(self, rank):
        torch.manual_seed(90 + rank)          # weights of rank 0 win when DDP is built
        self.gen, self.critic = DDP(mlp(4, 2, norm=True)), DDP(Critic())
        self.opt_g = torch.optim.Adam(self.gen.parameters(), lr=1e-3, betas=(0.0, 0.9))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=1e-3, betas=(0.0, 0.9))

    def real(self, n):
        angle = 2 * torch.pi * torch.rand(n)
        return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)

    def critic_step(self, n):
        with torch.no_grad():
            fake = self.gen(torch.randn(n, 4))
        loss = self.critic(self.real(n), fake, torch.rand(n, 1))
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        return loss.item()

    def generator_step(self, n):
        # the critic's weights get no update here, so it may run without its wrapper
        score = self.critic.module.net(self.gen(torch.randn(n, 4))).mean()
        self.opt_g.zero_grad()
        (-score).backward()
        self.opt_g.step()
        return score.item()


def main(iterations=40, critic_steps=3):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    gan = WGAN(rank)
    for it in range(1, iterations + 1):
        for _ in range(critic_steps):
            c = gan.critic_step(32)
        g = gan.generator_step(32)
        if rank == 0 and it % 10 == 0:
            print(f"{it}: critic {c:.3f} generator {g:.3f}", flush=True)
    if rank == 0:
        gan.gen.module.eval()
        with torch.no_grad():
            radius = gan.gen.module(torch.randn(200, 4)).norm(dim=1)
        print(f"radius {radius.mean().item():.2f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
