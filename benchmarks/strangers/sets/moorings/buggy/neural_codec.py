"""Small neural audio codec: an autoencoder with an adversarial loss from a waveform discriminator."""
import os
import random
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset, DistributedSampler

config = SimpleNamespace(
    seed=42,
    epochs=4,
    batch_size=8,
    lr=1e-3,
    disc_lr=1e-3,
    train_discriminator=0.67,
    warmup_epoch=1,
)


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class Codec(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, ch, 7, 2, 3), nn.ELU(), nn.Conv1d(ch, ch, 7, 2, 3))
        self.dec = nn.Sequential(nn.ConvTranspose1d(ch, ch, 4, 2, 1), nn.ELU(), nn.ConvTranspose1d(ch, 1, 4, 2, 1))

    def forward(self, wav):
        return self.dec(self.enc(wav))


class WaveDisc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, 16, 15, 4, 7), nn.LeakyReLU(0.2), nn.Conv1d(16, 1, 5, 1, 2))

    def forward(self, wav):
        return self.net(wav).mean((1, 2))


def tones(n=128, length=64):
    g = torch.Generator().manual_seed(0)
    f = torch.rand(n, 1, generator=g) * 0.4 + 0.05
    t = torch.arange(length)[None]
    return (torch.sin(f * t) + 0.02 * torch.randn(n, length, generator=g))[:, None]


def train_one_step(epoch, wav, model, disc, optim, disc_optim):
    recon = model(wav)
    for p in disc.parameters():
        p.requires_grad_(False)
    loss_g = F.l1_loss(recon, wav) - 0.01 * disc.module(recon).mean()
    optim.zero_grad()
    loss_g.backward()
    optim.step()
    for p in disc.parameters():
        p.requires_grad_(True)

    train_discriminator = (config.train_discriminator
                           and epoch >= config.warmup_epoch
                           and random.random() < float(config.train_discriminator))
    loss_d = None
    if train_discriminator:
        scores = disc(torch.cat([wav, recon.detach()]))
        real, fake = scores.chunk(2)
        loss_d = F.relu(1 - real).mean() + F.relu(1 + fake).mean()
        disc_optim.zero_grad()
        loss_d.backward()
        disc_optim.step()
    return loss_g, loss_d


def train(rank):
    set_seed(config.seed + rank)
    model, disc = DDP(Codec()), DDP(WaveDisc())
    optim = torch.optim.Adam(model.parameters(), lr=config.lr)
    disc_optim = torch.optim.Adam(disc.parameters(), lr=config.disc_lr)
    data = TensorDataset(tones())
    sampler = DistributedSampler(data, shuffle=True, seed=config.seed)
    loader = DataLoader(data, config.batch_size, sampler=sampler, drop_last=True)
    for epoch in range(config.epochs):
        sampler.set_epoch(epoch)
        steps_d = 0
        for (wav,) in loader:
            wav = wav * random.uniform(0.5, 1.0)
            loss_g, loss_d = train_one_step(epoch, wav, model, disc, optim, disc_optim)
            steps_d += loss_d is not None
        if rank == 0:
            print(f"epoch {epoch} loss_g {loss_g.item():.4f} discriminator steps {steps_d}", flush=True)
        dist.barrier()


if __name__ == "__main__":
    dist.init_process_group(backend="gloo", init_method="env://")
    train(int(os.environ["RANK"]))
    dist.destroy_process_group()
