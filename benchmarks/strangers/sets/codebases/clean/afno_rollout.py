"""A Fourier neural operator for a periodic advection-diffusion field, trained as FourCastNet is."""
import logging
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import yaml
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler

CONFIG = """
afno_backbone: &backbone
  modes: 8
  embed_dim: 24
  depth: 2
base:
  <<: *backbone
  lr: 2.0e-3
  scheduler: CosineAnnealingLR
  max_epochs: 5
  batch_size: 16
  n_years: 6
  steps_per_year: 80
  grid: 32
  log_to_screen: true
"""


class YParams:
    def __init__(self, text, config_name):
        self.params = yaml.safe_load(text)[config_name]
        for key, val in self.params.items():
            setattr(self, key, val)


class GetDataset(Dataset):
    """Consecutive states of a field; a year is one run from its own initial state."""

    def __init__(self, params, train):
        rng = np.random.RandomState(0 if train else 1)
        years = params.n_years if train else 1
        k = np.fft.rfftfreq(params.grid, 1 / params.grid)
        propagate = np.exp(-0.002 * k ** 2 - 0.35j * k)
        fields = []
        for _ in range(years):
            spec = (rng.normal(size=k.shape) + 1j * rng.normal(size=k.shape)) * np.exp(-0.3 * k) * params.grid / 3
            year = []
            for _ in range(params.steps_per_year + 1):
                year.append(np.fft.irfft(spec, params.grid))
                spec = spec * propagate + 0.02 * rng.normal(size=k.shape) * (k == 1)
            fields.append(year)
        self.fields = torch.tensor(np.array(fields), dtype=torch.float32)
        self.per_year = params.steps_per_year

    def __len__(self):
        return self.fields.shape[0] * self.per_year

    def __getitem__(self, i):
        year, step = divmod(i, self.per_year)
        return self.fields[year, step:step + 1], self.fields[year, step + 1:step + 2]


def get_data_loader(params, distributed, train):
    dataset = GetDataset(params, train)
    sampler = DistributedSampler(dataset, shuffle=train) if distributed else None
    if sampler is None:
        return DataLoader(dataset, params.local_batch_size, shuffle=train, drop_last=True), dataset
    # whole batches from the sampler, so that a reader can fetch them in one go
    batches = BatchSampler(sampler, params.local_batch_size, drop_last=True)
    return DataLoader(dataset, batch_sampler=batches, num_workers=0), dataset


class SpectralMix(nn.Module):
    def __init__(self, dim, modes):
        super().__init__()
        self.modes = modes
        self.w = nn.Parameter(torch.randn(2, dim, dim, modes) / dim)
        self.mlp = nn.Sequential(nn.Conv1d(dim, 2 * dim, 1), nn.GELU(), nn.Conv1d(2 * dim, dim, 1))

    def forward(self, x):
        spec = torch.fft.rfft(x)[..., :self.modes]
        mixed = torch.einsum("bim,iom->bom", spec, torch.complex(self.w[0], self.w[1]))
        x = x + torch.fft.irfft(mixed, x.shape[-1])
        return x + self.mlp(x)


class AFNONet(nn.Module):
    def __init__(self, params):
        super().__init__()
        d = params.embed_dim
        self.lift, self.head = nn.Conv1d(1, d, 1), nn.Conv1d(d, 1, 1)
        self.blocks = nn.Sequential(*(SpectralMix(d, params.modes) for _ in range(params.depth)))

    def forward(self, x):
        return x + self.head(self.blocks(self.lift(x)))


def lp_loss(x, y):
    return ((x - y).flatten(1).norm(dim=1) / y.flatten(1).norm(dim=1)).mean()


class Trainer:
    def __init__(self, params, world_rank):
        self.params, self.world_rank = params, world_rank
        self.train_data_loader, self.train_dataset = get_data_loader(params, dist.is_initialized(), train=True)
        self.valid_data_loader, self.valid_dataset = get_data_loader(params, dist.is_initialized(), train=False)
        self.train_sampler = self.train_data_loader.batch_sampler.sampler
        self.model = DistributedDataParallel(AFNONet(params))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=params.lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=params.max_epochs)
        self.epoch = 0

    def train(self):
        for epoch in range(self.params.max_epochs):
            self.epoch = epoch
            if hasattr(self.train_sampler, "set_epoch"):
                self.train_sampler.set_epoch(epoch)
            train_loss = self.train_one_epoch()
            valid_loss = self.validate_one_epoch()
            self.scheduler.step()
            if self.params.log_to_screen and self.world_rank == 0:
                logging.info("Epoch %d train %.5f valid %.5f", epoch + 1, train_loss, valid_loss)

    def train_one_epoch(self):
        self.model.train()
        logs = torch.zeros(2)
        for inp, tar in self.train_data_loader:
            self.optimizer.zero_grad()
            loss = lp_loss(self.model(inp), tar)
            loss.backward()
            self.optimizer.step()
            logs += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(logs)
        return (logs[0] / logs[1]).item()

    @torch.no_grad()
    def validate_one_epoch(self):
        self.model.eval()
        logs = torch.zeros(2)
        for inp, tar in self.valid_data_loader:
            logs += torch.tensor([lp_loss(self.model.module(inp), tar), 1.0])
        dist.all_reduce(logs)
        return (logs[0] / logs[1]).item()


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    params = YParams(os.path.expandvars(CONFIG), "base")
    dist.init_process_group("gloo")
    params.local_batch_size = params.batch_size // dist.get_world_size()
    torch.manual_seed(333 + dist.get_rank())
    Trainer(params, dist.get_rank()).train()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
