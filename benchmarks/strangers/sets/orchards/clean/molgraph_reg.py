"""Message-passing regression on random molecule-like graphs (dense batches)."""
from __future__ import annotations

import contextlib
import dataclasses as dc
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

logger = logging.getLogger("molgraph")


@dc.dataclass(frozen=True)
class Config:
    graphs: int = 704
    nodes: int = 12
    feats: int = 8
    width: int = 32
    rounds: int = 3
    batch_size: int = 16
    accumulate: int = 4
    epochs: int = 4
    lr: float = 2e-3
    seed: int = 1


class RandomGraphs(Dataset):
    def __init__(self, cfg: Config):
        g = torch.Generator().manual_seed(cfg.seed)
        self.x = torch.randn(cfg.graphs, cfg.nodes, cfg.feats, generator=g)
        upper = (torch.rand(cfg.graphs, cfg.nodes, cfg.nodes, generator=g) < 0.2).float().triu(1)
        self.adj = upper + upper.transpose(1, 2)
        deg = self.adj.sum(-1, keepdim=True)
        self.y = (self.x[..., :1] * deg).mean((1, 2)) + 0.1 * deg.mean((1, 2))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.adj[i], self.y[i]


class MPNN(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.embed = nn.Linear(cfg.feats, cfg.width)
        self.msg = nn.ModuleList(nn.Linear(cfg.width, cfg.width) for _ in range(cfg.rounds))
        self.upd = nn.GRUCell(cfg.width, cfg.width)
        self.read = nn.Sequential(nn.Linear(cfg.width, cfg.width), nn.SiLU(), nn.Linear(cfg.width, 1))

    def forward(self, x, adj):
        h = self.embed(x)
        b, n, w = h.shape
        for m in self.msg:
            agg = adj @ m(h)
            h = self.upd(agg.reshape(-1, w), h.reshape(-1, w)).view(b, n, w)
        return self.read(h.mean(1)).squeeze(-1)


class Accumulator:
    """Keeps count of micro-batches and says when the optimizer should act."""

    def __init__(self, every: int, total: int):
        self.every, self.total, self.seen = every, total, 0

    def advance(self) -> None:
        self.seen += 1

    @property
    def boundary(self) -> bool:
        return self.seen % self.every == 0

    @property
    def exhausted(self) -> bool:
        return self.seen == self.total

    @property
    def group_size(self) -> int:
        start = (self.seen - 1) // self.every * self.every
        return min(self.every, self.total - start)

    def region(self, model):
        return contextlib.nullcontext() if self.due() else model.no_sync()

    def due(self) -> bool:
        return self.boundary or self.exhausted


def train_one_epoch(model, loader, opt, cfg) -> float:
    model.train()
    acc = Accumulator(cfg.accumulate, len(loader))
    total = 0.0
    opt.zero_grad()
    for x, adj, y in loader:
        acc.advance()
        with acc.region(model):
            loss = nn.functional.smooth_l1_loss(model(x, adj), y)
            (loss / acc.group_size).backward()
        total += loss.item()
        if acc.due():
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            opt.step()
            opt.zero_grad()
    return total / len(loader)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    cfg = Config()
    dist.init_process_group("gloo")
    torch.manual_seed(cfg.seed)
    data = RandomGraphs(cfg)
    sampler = DistributedSampler(data, seed=cfg.seed)
    loader = DataLoader(data, cfg.batch_size, sampler=sampler)
    model = DistributedDataParallel(MPNN(cfg))
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        value = torch.tensor(train_one_epoch(model, loader, opt, cfg))
        dist.all_reduce(value)
        if dist.get_rank() == 0:
            logger.info("epoch %d: smooth-l1 %.4f", epoch, value / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
