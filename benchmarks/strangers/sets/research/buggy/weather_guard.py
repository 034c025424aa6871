"""Next-state forecasting on gridded fields with a guard against corrupted time steps."""
import collections
import math
import statistics
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class RunConfig:
    lr: float = 3e-3
    num_epochs: int = 3
    batch_size: int = 6
    history: int = 20
    spike_factor: float = 8.0
    seed: int = 314


class Reanalysis(Dataset):
    """Drifting waves on an 8 x 16 grid; one archived step is damaged."""

    def __init__(self, steps=120, damaged=(71,)):
        g = torch.Generator().manual_seed(1)
        lat = torch.linspace(-1, 1, 8)[:, None]
        lon = torch.linspace(0, 2 * math.pi, 17)[:16]
        t = torch.arange(steps + 1).float()[:, None, None]
        self.z = torch.cos(lat) * torch.sin(2 * lon + 0.15 * t) + 0.05 * torch.randn(steps + 1, 8, 16, generator=g)
        for k in damaged:
            self.z[k] = float("nan")

    def __len__(self):
        return len(self.z) - 1

    def __getitem__(self, i):
        return self.z[i][None], self.z[i + 1][None]


class Forecast(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, padding_mode="circular"), nn.GELU(),
                                  nn.Conv2d(width, 1, 3, padding=1, padding_mode="circular"))

    def forward(self, x):
        return x + self.conv(x)


class SpikeGuard:
    """Keeps a short history of losses and tells whether a new one is out of line."""

    def __init__(self, cf):
        self.history = collections.deque(maxlen=cf.history)
        self.factor = cf.spike_factor

    def is_anomalous(self, value):
        if not math.isfinite(value):
            return True
        if len(self.history) >= 5 and value > self.factor * statistics.median(self.history):
            return True
        self.history.append(value)
        return False


class Trainer(SpikeGuard):
    def __init__(self, cf):
        super().__init__(cf)
        self.cf = cf
        self.is_root = dist.get_rank() == 0
        torch.manual_seed(cf.seed)
        self.model = DistributedDataParallel(Forecast())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cf.lr)
        data = Reanalysis()
        self.sampler = DistributedSampler(data, seed=cf.seed, drop_last=True)
        self.loader = DataLoader(data, batch_size=cf.batch_size, sampler=self.sampler)
        self.skipped = 0

    def should_skip(self, loss):
        flag = torch.tensor([float(self.is_anomalous(loss.item()))])
        dist.broadcast(flag, src=0)
        return bool(flag.item())

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        log = torch.zeros(2)
        for source, target in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(source), target)
            if self.should_skip(loss.detach()):
                self.skipped += 1
                continue
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            log += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(log)
        return (log[0] / log[1]).item()

    def run(self):
        for epoch in range(self.cf.num_epochs):
            mean_loss = self.train_epoch(epoch)
            if self.is_root:
                print(f"epoch {epoch}: loss {mean_loss:.5f}, skipped {self.skipped} batches so far", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(RunConfig()).run()
    dist.destroy_process_group()
