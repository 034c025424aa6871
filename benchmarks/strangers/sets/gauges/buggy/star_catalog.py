"""Stellar parameter regression from spectra, sharded optimizer state.

Usage: torchrun --nproc_per_node=2 star_catalog.py
"""
import os
import shutil
import tempfile
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Run:
    epochs: int = 3
    batch: int = 32
    lr: float = 1e-3
    out: str = field(default_factory=lambda: os.path.join(tempfile.gettempdir(), f"stars_{os.environ.get('TORCHELASTIC_RUN_ID', 'x')}_{os.getppid()}"))


class Spectra(nn.Module):
    def __init__(self, bins=128):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 8, 9, stride=4), nn.GELU(), nn.Conv1d(8, 16, 5, stride=2), nn.GELU())
        self.head = nn.Linear(16 * 13, 3)

    def forward(self, s):
        return self.head(self.conv(s[:, None]).flatten(1))


def catalogue(n=384):
    g = torch.Generator().manual_seed(8)
    teff, logg, feh = torch.rand(3, n, generator=g)
    grid = torch.linspace(0, 1, 128)
    flux = torch.exp(-((grid - teff[:, None]) ** 2) * 10) + 0.3 * torch.sin(20 * grid * (1 + logg[:, None])) * feh[:, None]
    return TensorDataset(flux + 0.01 * torch.randn(n, 128, generator=g), torch.stack([teff, logg, feh], 1))


class Checkpointer:
    def __init__(self, folder, model, optim):
        self.folder, self.model, self.optim = folder, model, optim

    def _payload(self, epoch):
        return {"epoch": epoch, "model": self.model.module.state_dict(), "optim": self._optim_state()}

    def _optim_state(self):
        if hasattr(self.optim, "consolidate_state_dict"):
            self.optim.consolidate_state_dict(to=0)
        return self.optim.state_dict()

    def save(self, epoch):
        if dist.get_rank() != 0:
            return
        os.makedirs(self.folder, exist_ok=True)
        torch.save(self._payload(epoch), os.path.join(self.folder, f"epoch{epoch}.pt"))


def main():
    torch.set_num_threads(1)
    cfg = Run()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    data = catalogue()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, cfg.batch, sampler=sampler)
    model = DDP(Spectra())
    optim = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=cfg.lr)
    ckpt = Checkpointer(cfg.out, model, optim)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for flux, target in loader:
            optim.zero_grad()
            loss = nn.functional.smooth_l1_loss(model(flux), target)
            loss.backward()
            optim.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.5f}", flush=True)
        ckpt.save(epoch)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(cfg.out, ignore_errors=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
