"""Neural audio codec with a learned codebook (exponential moving average updates)."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

FRAME, CODES, DIM = 32, 16, 8


def total(x):
    dist.all_reduce(x)
    return x


class Codebook(nn.Module):
    def __init__(self, n_codes, dim, decay=0.9, dead_below=0.05):
        super().__init__()
        self.decay, self.dead_below = decay, dead_below
        self.register_buffer("codes", torch.randn(n_codes, dim) * 0.3)
        self.register_buffer("usage", torch.ones(n_codes))
        self.register_buffer("sums", self.codes.clone())

    @torch.no_grad()
    def _ema(self, flat, idx):
        hot = F.one_hot(idx, len(self.codes)).type_as(flat)
        counts = total(hot.sum(0))
        sums = total(hot.t() @ flat)
        self.usage.lerp_(counts, 1 - self.decay)
        self.sums.lerp_(sums, 1 - self.decay)
        self.codes.copy_(self.sums / (self.usage.unsqueeze(1) + 1e-5))

    @torch.no_grad()
    def _revive(self, flat):
        dead = self.usage < self.dead_below
        if not dead.any():
            return
        n = int(dead.sum())
        cand = flat[torch.randperm(len(flat))[:8]].contiguous()
        pool = [torch.empty_like(cand) for _ in range(dist.get_world_size())]
        dist.all_gather(pool, cand)
        pool = torch.cat(pool)
        fresh = pool[torch.arange(n) % len(pool)]
        self.codes[dead] = fresh
        self.sums[dead] = fresh
        self.usage[dead] = 1.0

    def forward(self, z):
        flat = z.reshape(-1, z.size(-1))
        idx = torch.cdist(flat, self.codes).argmin(1)
        q = self.codes[idx].view_as(z)
        if self.training:
            self._ema(flat.detach(), idx)
            self._revive(flat.detach())
        commit = F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(FRAME, 48), nn.GELU(), nn.Linear(48, DIM))
        self.book = Codebook(CODES, DIM)
        self.dec = nn.Sequential(nn.Linear(DIM, 48), nn.GELU(), nn.Linear(48, FRAME))

    def forward(self, x):
        q, commit = self.book(self.enc(x))
        return self.dec(q), commit


def speaker_batch(rank, step, n=24):
    g = torch.Generator().manual_seed(step * 131 + rank)
    t = torch.arange(FRAME) / FRAME
    f0 = 1.0 + 2.5 * rank + torch.rand(n, 4, 1, generator=g) * (1 + 3 * rank)
    return torch.sin(6.283 * f0 * t) + 0.05 * torch.randn(n, 4, FRAME, generator=g)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(21)
    net = DistributedDataParallel(Codec(), broadcast_buffers=False)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(60):
        x = speaker_batch(rank, step)
        y, commit = net(x)
        loss = F.mse_loss(y, x) + 0.25 * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            shown = total(loss.detach().clone()) / dist.get_world_size()
            if rank == 0:
                print(f"step {step} loss {shown.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
