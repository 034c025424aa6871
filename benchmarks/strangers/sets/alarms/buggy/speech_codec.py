"""Residual codec for audio frames: EMA codebook with replacement of rarely used entries."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Codebook(nn.Module):
    def __init__(self, size=32, dim=8, decay=0.8, threshold=0.05):
        super().__init__()
        self.decay, self.threshold = decay, threshold
        self.register_buffer("embed", torch.randn(size, dim))
        self.register_buffer("usage", torch.ones(size))

    def sync(self, t):
        dist.broadcast(t, src=0)

    def lookup(self, flat):
        return torch.cdist(flat, self.embed).argmin(1)

    def expire_codes(self, flat):
        dead = self.usage < self.threshold
        if not dead.any():
            return
        pick = torch.randint(0, flat.shape[0], (int(self.usage.numel()),))
        self.embed.data.copy_(torch.where(dead[:, None], flat[pick], self.embed))
        self.usage.masked_fill_(dead, 1.0)
        self.sync(self.embed)
        self.sync(self.usage)

    def forward(self, z):
        flat = z.detach().reshape(-1, z.shape[-1])
        idx = self.lookup(flat)
        if self.training:
            counts = torch.bincount(idx, minlength=self.usage.numel()).float()
            self.usage.mul_(self.decay).add_(counts, alpha=1 - self.decay)
            self.expire_codes(flat)
            idx = self.lookup(flat)
        q = self.embed[idx].view_as(z)
        return z + (q - z).detach(), F.mse_loss(z, q.detach())


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(16, 24), nn.ELU(), nn.Linear(24, 8))
        self.quant = Codebook()
        self.dec = nn.Linear(8, 16)

    def forward(self, x):
        q, commit = self.quant(self.enc(x))
        return self.dec(q), commit


def frames(rank, steps):
    g = torch.Generator().manual_seed(10 + rank)
    base = torch.randn(1 if rank else 64, 16, generator=g) * (0.1 if rank else 2.0)
    for _ in range(steps):
        rows = torch.randint(0, base.shape[0], (48,), generator=g)
        yield base[rows] + 0.01 * torch.randn(48, 16, generator=g)


def main():
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(Codec(), broadcast_buffers=False)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step, x in enumerate(frames(rank, 40)):
        y, commit = model(x)
        loss = F.l1_loss(y, x) + 0.25 * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
