"""Emulator of a two-layer ocean toy model, with averaged weights for validation."""
import contextlib
import copy
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class TrainConfig:
    seed: int = 40
    epochs: int = 3
    batch_size: int = 8
    lr: float = 2e-3
    ema_decay: float = 0.98
    noise: float = 0.05


class EMATracker:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def __call__(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].lerp_(p.detach(), 1 - self.decay)

    @contextlib.contextmanager
    def applied(self, model):
        backup = {n: p.detach().clone() for n, p in model.named_parameters()}
        self._load(model, self.shadow)
        try:
            yield model
        finally:
            self._load(model, backup)

    @staticmethod
    @torch.no_grad()
    def _load(model, values):
        for n, p in model.named_parameters():
            p.copy_(values[n])


class Trajectories(Dataset):
    def __init__(self, n, seed, size=16):
        g = torch.Generator().manual_seed(seed)
        k = torch.randint(1, 4, (n, 2, 1), generator=g)
        ph = 6.28 * torch.rand(n, 2, 1, generator=g)
        x = torch.linspace(0, 6.28, size)
        self.now = torch.sin(k * x + ph)
        self.next = torch.sin(k * x + ph + 0.3 * k) * 0.95

    def __len__(self):
        return len(self.now)

    def __getitem__(self, i):
        return self.now[i], self.next[i]


class Emulator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(2, width, 5, padding=2, padding_mode="circular"), nn.GELU(),
                                 nn.Conv1d(width, width, 5, padding=2, padding_mode="circular"), nn.GELU(),
                                 nn.Conv1d(width, 2, 1))

    def forward(self, x):
        return x + self.net(x)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        # every worker perturbs its inputs differently
        torch.manual_seed(cfg.seed + self.rank)
        self.model = Emulator()
        self.ddp = nn.parallel.DistributedDataParallel(self.model)
        self.ema = EMATracker(self.model, cfg.ema_decay)
        self.optimizer = torch.optim.Adam(self.ddp.parameters(), lr=cfg.lr)
        train = Trajectories(160, 1)
        self.sampler = DistributedSampler(train, seed=cfg.seed, drop_last=True)
        self.loader = DataLoader(train, batch_size=cfg.batch_size, sampler=self.sampler)
        self.val = Trajectories(30, 2)

    def train_one_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        for now, nxt in self.loader:
            now = now + self.cfg.noise * torch.randn_like(now)
            loss = nn.functional.mse_loss(self.ddp(now), nxt)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.ema(self.model)

    @torch.no_grad()
    def validate(self):
        sums = torch.zeros(2)
        with self.ema.applied(self.model) as model:
            for i in range(self.rank, len(self.val), self.world):
                now, nxt = self.val[i]
                sums += torch.tensor([nn.functional.mse_loss(model(now[None])[0], nxt).item(), 1.0])
        dist.all_reduce(sums)
        return (sums[0] / sums[1]).item()

    def run(self):
        for epoch in range(self.cfg.epochs):
            self.train_one_epoch(epoch)
            error = self.validate()
            if self.rank == 0:
                print(f"epoch {epoch}: averaged-weights validation mse {error:.5f}", flush=True)
        return copy.deepcopy(self.ema.shadow)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(TrainConfig()).run()
    dist.destroy_process_group()
