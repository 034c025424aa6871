"""Distil a draft head from a frozen verifier; the best epoch is kept in memory and restored at the end."""
import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


@dataclass
class TrainerConfig:
    lr: float = 0.1
    num_epochs: int = 12
    batch_size: int = 8
    dim: int = 16
    vocab: int = 24


class Best(NamedTuple):
    loss: float
    epoch: int
    weights: dict


class Verifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.dim, 64), nn.Tanh(), nn.Linear(64, cfg.vocab))
        self.requires_grad_(False)

    def forward(self, h):
        return self.net(3 * h)


class DraftHead(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.dim, 24), nn.GELU(), nn.Linear(24, cfg.vocab))

    def forward(self, h):
        return self.net(h)


class Trainer:
    def __init__(self, cfg, rank, world):
        self.cfg, self.rank, self.world = cfg, rank, world
        torch.manual_seed(0)
        self.verifier = Verifier(cfg).eval()
        self.model = DistributedDataParallel(DraftHead(cfg))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        g = torch.Generator().manual_seed(2)
        train, val = TensorDataset(torch.randn(64, cfg.dim, generator=g)), TensorDataset(torch.randn(40, cfg.dim, generator=g))
        self.sampler = DistributedSampler(train, drop_last=True)
        self.train_loader = DataLoader(train, batch_size=cfg.batch_size, sampler=self.sampler)
        self.val_loader = DataLoader(Subset(val, range(rank, len(val), world)), batch_size=cfg.batch_size)

    def loss(self, net, h, reduction="batchmean"):
        return F.kl_div(net(h).log_softmax(-1), self.verifier(h).softmax(-1), reduction=reduction)

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        self.model.train()
        for (h,) in self.train_loader:
            self.opt.zero_grad()
            self.loss(self.model, h).backward()
            self.opt.step()

    @torch.no_grad()
    def val_epoch(self):
        self.model.eval()
        metrics = {"loss_sum": torch.zeros(1), "count": torch.zeros(1)}
        for (h,) in self.val_loader:
            metrics["loss_sum"] += self.loss(self.model.module, h, reduction="sum")
            metrics["count"] += len(h)
        for v in metrics.values():
            dist.reduce(v, dst=0, op=dist.ReduceOp.SUM)
        return (metrics["loss_sum"] / metrics["count"]).item()

    def run(self):
        best = Best(float("inf"), -1, {})
        for epoch in range(self.cfg.num_epochs):
            self.train_epoch(epoch)
            val_loss = self.val_epoch()
            if val_loss < best.loss:
                best = Best(val_loss, epoch, copy.deepcopy(self.model.module.state_dict()))
            if self.rank == 0:
                print(f"epoch {epoch}: val loss {val_loss:.4f} (best {best.loss:.4f} at {best.epoch})", flush=True)
        self.model.module.load_state_dict(best.weights)
        final = self.val_epoch()
        if self.rank == 0:
            print(f"restored epoch {best.epoch}, val loss {final:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(TrainerConfig(), dist.get_rank(), dist.get_world_size()).run()
    dist.destroy_process_group()
