# style: GAN, one wrapped network and one forgotten
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Generator(nn.Module):
    def __init__(self, latent=4, width=16):
        super().__init__()
        self.latent = latent
        self.net = nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def real_points(count, generator):
    angle = 6.28 * torch.rand(count, generator=generator)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def requires_grad(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def critic_step(g, d, optimizer, batch, source):
    z = torch.randn(batch, 4, generator=source)
    with torch.no_grad():
        fake = g(z)
    real_score, fake_score = d(torch.cat([real_points(batch, source), fake])).chunk(2)
    loss = nn.functional.softplus(-real_score).mean() + nn.functional.softplus(fake_score).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # <-- DDP300
    return loss.item()


def generator_step(g, d, optimizer, batch, source):
    requires_grad(d, False)
    z = torch.randn(batch, 4, generator=source)
    loss = nn.functional.softplus(-d(g(z))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    requires_grad(d, True)
    return loss.item()


def main():
    rank = dist.get_rank()
    torch.manual_seed(77)
    g = DDP(Generator())
    d = Critic()  # <-- DDP300
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.5, 0.9))
    opt_d = torch.optim.Adam(d.parameters(), lr=1e-3, betas=(0.5, 0.9))
    source = torch.Generator().manual_seed(rank)
    for step in range(9):
        d_loss = critic_step(g, d, opt_d, 8, source)
        g_loss = generator_step(g, d, opt_g, 8, source)
        if rank == 0 and step % 4 == 0:
            print(f"{step}: d {d_loss:.3f} g {g_loss:.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
