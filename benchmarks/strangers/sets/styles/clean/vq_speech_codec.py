"""A small neural speech codec: strided encoder, EMA codebook, decoder (EnCodec / VQ-VAE-2 style)."""
import argparse
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Tones(Dataset):
    """Sums of a few sinusoids, one speaker range per block of the list."""

    def __init__(self, n=128, length=256, seed=0):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(length) / length
        self.wave = []
        for i in range(n):
            base = 4 + 3 * (i * 4 // n)
            freq = base + 3 * torch.rand(3, generator=g)
            phase = 6.28 * torch.rand(3, generator=g)
            x = torch.sin(6.28 * freq[:, None] * t + phase[:, None]).mean(0)
            self.wave.append(x + 0.02 * torch.randn(length, generator=g))

    def __len__(self):
        return len(self.wave)

    def __getitem__(self, i):
        return self.wave[i].unsqueeze(0)


class EuclideanCodebook(nn.Module):
    """Codes follow an exponential moving average of the vectors assigned to them."""

    def __init__(self, dim, size, decay=0.9, eps=1e-5):
        super().__init__()
        self.size, self.decay, self.eps = size, decay, eps
        embed = 0.05 * torch.randn(size, dim)
        self.register_buffer("embed", embed)
        self.register_buffer("embed_avg", embed.clone())
        self.register_buffer("cluster_size", torch.ones(size))

    @torch.no_grad()
    def ema_(self, flat, onehot):
        count = onehot.sum(0)
        total = onehot.t() @ flat
        dist.all_reduce(count)
        dist.all_reduce(total)
        self.cluster_size.mul_(self.decay).add_(count, alpha=1 - self.decay)
        self.embed_avg.mul_(self.decay).add_(total, alpha=1 - self.decay)
        n = self.cluster_size.sum()
        smoothed = (self.cluster_size + self.eps) / (n + self.size * self.eps) * n
        self.embed.copy_(self.embed_avg / smoothed.unsqueeze(1))

    def forward(self, x):
        flat = x.transpose(1, 2).reshape(-1, x.shape[1])
        with torch.no_grad():
            index = torch.cdist(flat, self.embed).argmin(1)
        quant = F.embedding(index, self.embed).view(x.shape[0], x.shape[2], -1).transpose(1, 2)
        if self.training:
            self.ema_(flat.detach(), F.one_hot(index, self.size).to(flat.dtype))
        commit = F.mse_loss(x, quant.detach())
        return x + (quant - x).detach(), index, commit


class Codec(nn.Module):
    def __init__(self, dim=12, codes=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 8, 4, 2), nn.ELU(), nn.Conv1d(16, 24, 8, 4, 2), nn.ELU(), nn.Conv1d(24, dim, 3, 1, 1))
        self.codebook = EuclideanCodebook(dim, codes)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(dim, 24, 8, 4, 2), nn.ELU(), nn.ConvTranspose1d(24, 16, 8, 4, 2), nn.ELU(),
            nn.Conv1d(16, 1, 5, 1, 2))

    def forward(self, wave):
        quant, index, commit = self.codebook(self.encoder(wave))
        return self.decoder(quant), index, commit


def perplexity(index, size):
    p = torch.bincount(index, minlength=size).float()
    p = p / p.sum()
    return torch.exp(-(p * (p + 1e-9).log()).sum())


def train(rank, world, port, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(args.seed)
    data = Tones()
    sampler = DistributedSampler(data, world, rank, shuffle=True)
    loader = DataLoader(data, args.batch_size, sampler=sampler, drop_last=True)
    codec = Codec()
    model = DDP(codec, broadcast_buffers=False)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.8, 0.99))
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.97)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        meter = torch.zeros(3)
        for wave in loader:
            rec, index, commit = model(wave)
            l1 = F.l1_loss(rec, wave)
            loss = l1 + 0.25 * commit
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            meter += torch.stack([l1.detach(), perplexity(index, codec.codebook.size), torch.tensor(1.0)])
        sched.step()
        dist.all_reduce(meter)
        if rank == 0:
            print(f"epoch {epoch} l1 {meter[0] / meter[2]:.4f} perplexity {meter[1] / meter[2]:.2f}", flush=True)
    if rank == 0:
        bits = torch.log2(torch.tensor(float(codec.codebook.size))).item() * 16
        print(f"{bits:.0f} bits per clip", flush=True)
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=3)
    p.add_argument("--world", type=int, default=2)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(args.world, port, args), nprocs=args.world)


if __name__ == "__main__":
    main()
