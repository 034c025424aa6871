"""Stage 1 (autoencoder) followed by stage 2 (prior over the latents), one process per device."""
import argparse
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class AutoEncoder(nn.Module):
    def __init__(self, d=32, z=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, 32), nn.SiLU(), nn.Linear(32, z))
        self.dec = nn.Sequential(nn.Linear(z, 32), nn.SiLU(), nn.Linear(32, d))

    def to_latent(self, x):
        z = self.enc(x)
        return z / (z.std() + 1e-6)

    def forward(self, x):
        return self.dec(self.enc(x))


class Denoiser(nn.Module):
    def __init__(self, z=6):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(z + 1, 48), nn.SiLU(), nn.Linear(48, z))

    def forward(self, zt, t):
        return self.f(torch.cat([zt, t[:, None]], 1))


def stage_one(ae, data, steps):
    opt = torch.optim.Adam(ae.parameters(), lr=3e-3)
    for _ in range(steps):
        x = data()
        loss = (ae(x) - x).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()


def stage_two(ae, prior, data, steps):
    opt = torch.optim.Adam(prior.parameters(), lr=3e-3)
    for _ in range(steps):
        with torch.no_grad():
            z = ae.module.to_latent(data())
        t = torch.rand(len(z))
        eps = torch.randn_like(z)
        zt = (1 - t[:, None]) * z + t[:, None] * eps
        loss = (prior(zt, t) - eps).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--s1", type=int, default=30)
    p.add_argument("--s2", type=int, default=30)
    a = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    basis = torch.randn(4, 32)
    ae, prior = DDP(AutoEncoder()), DDP(Denoiser())
    torch.manual_seed(100 + rank)

    def data():
        return torch.randn(32, 4) @ basis

    l1 = stage_one(ae, data, a.s1)
    l2 = stage_two(ae, prior, data, a.s2)
    if rank == 0:
        print(f"recon {l1:.4f} prior {l2:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
