"""Small neural audio codec (waveform autoencoder with a spectral loss).

    torchrun --nproc_per_node=2 audio_codec.py
"""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class Hyper:
    epochs: int = 3
    batch: int = 8
    lr: float = 2e-3
    commit: float = 0.1
    segment: int = 512


class Clips(Dataset):
    def __init__(self, n=128, segment=512):
        g = torch.Generator().manual_seed(2)
        t = torch.arange(segment) / segment
        f = torch.randint(3, 40, (n, 3), generator=g).float()
        a = torch.rand(n, 3, generator=g)
        self.wave = (a[..., None] * torch.sin(6.283 * f[..., None] * t)).sum(1)

    def __len__(self):
        return len(self.wave)

    def __getitem__(self, i):
        return self.wave[i]


class Codec(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, dim, 9, stride=4, padding=4), nn.ELU(), nn.Conv1d(dim, dim, 9, stride=4, padding=4))
        self.dec = nn.Sequential(nn.ConvTranspose1d(dim, dim, 8, stride=4, padding=2), nn.ELU(), nn.ConvTranspose1d(dim, 1, 8, stride=4, padding=2))
        self.levels = 4

    def encode(self, wave):
        z = self.enc(wave[:, None])
        q = torch.round(torch.tanh(z) * self.levels) / self.levels
        return z + (q - z).detach(), z, q

    def decode(self, code):
        return self.dec(code).squeeze(1)

    def forward(self, wave):
        code, z, q = self.encode(wave)
        return self.decode(code), z, q


def unwrap(net):
    return net.module if hasattr(net, "module") else net


def spectrum(w):
    return torch.fft.rfft(w * torch.hann_window(w.shape[-1])).abs()


class CodecTrainer:
    def __init__(self, hp):
        self.hp = hp
        self.rank = dist.get_rank()
        torch.manual_seed(0)
        data = Clips(segment=hp.segment)
        self.sampler = DistributedSampler(data)
        self.loader = DataLoader(data, hp.batch, sampler=self.sampler)
        self.net = DistributedDataParallel(Codec())
        self.opt = torch.optim.Adam(self.net.parameters(), lr=hp.lr)

    def losses(self, wave):
        codec = unwrap(self.net)
        code, z, q = codec.encode(wave)
        rebuilt = codec.decode(code)
        return {
            "wave": nn.functional.l1_loss(rebuilt, wave),
            "spec": 0.02 * nn.functional.l1_loss(spectrum(rebuilt), spectrum(wave)),
            "commit": self.hp.commit * nn.functional.mse_loss(torch.tanh(z), q.detach()),
        }

    @torch.no_grad()
    def snr(self):
        wave = torch.stack([self.loader.dataset[i] for i in range(16)])
        rebuilt, _, _ = unwrap(self.net)(wave)
        return 10 * torch.log10(wave.pow(2).sum() / (rebuilt - wave).pow(2).sum())

    def fit(self):
        for epoch in range(self.hp.epochs):
            self.sampler.set_epoch(epoch)
            for wave in self.loader:
                parts = self.losses(wave)
                self.opt.zero_grad()
                sum(parts.values()).backward()
                self.opt.step()
            if self.rank == 0:
                print(f"epoch {epoch} " + " ".join(f"{k} {v.item():.4f}" for k, v in parts.items()) + f" snr {self.snr():.2f} dB")
        dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    CodecTrainer(Hyper()).fit()
    dist.destroy_process_group()
