"""Trains a small draft head on hidden states of a frozen verifier."""
import json
import os
import shutil
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class TrainConfig:
    hidden: int = 24
    vocab: int = 12
    epochs: int = 6
    steps_per_epoch: int = 8
    lr: float = 2e-2
    seed: int = 7


class ShardedCheckpointer:
    """Every rank writes its shard, rank 0 writes the index when all shards are there."""

    def __init__(self, folder):
        self.folder = folder

    def save_checkpoint(self, epoch, model, optim):
        rank = dist.get_rank()
        names = sorted(dict(model.module.named_parameters()))
        mine = {n: model.module.get_parameter(n).detach().clone() for n in names[rank::dist.get_world_size()]}
        final = os.path.join(self.folder, f"shard{rank}_{epoch}.pt")
        torch.save({"model": mine, "optim": optim.state_dict()}, final + ".tmp")
        os.replace(final + ".tmp", final)
        dist.barrier()
        if rank == 0:
            with open(os.path.join(self.folder, "index.json"), "w") as f:
                json.dump({"epoch": epoch, "shards": dist.get_world_size()}, f)


def make_domain(n, hidden, vocab, shift, noise, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, hidden, generator=g) + shift
    w = torch.randn(hidden, vocab, generator=torch.Generator().manual_seed(99))
    y = (x @ w).argmax(1)
    flip = torch.rand(n, generator=g) < noise
    y[flip] = torch.randint(0, vocab, (int(flip.sum()),), generator=g)
    return x, y


class Trainer:
    def __init__(self, cfg, folder):
        self.cfg, self.rank, self.world = cfg, dist.get_rank(), dist.get_world_size()
        torch.manual_seed(cfg.seed)
        head = nn.Sequential(nn.Linear(cfg.hidden, 64), nn.GELU(), nn.Linear(64, cfg.vocab))
        self.model = DDP(head)
        self.optim = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        self.ckpt = ShardedCheckpointer(folder)
        self.best = float("inf")
        self.train_data = make_domain(96, cfg.hidden, cfg.vocab, 0.0, 0.0, 100 + self.rank)
        self.val_data = make_domain(64, cfg.hidden, cfg.vocab, 0.0, 0.0 if self.rank else 0.95, 300 + self.rank)

    def train_epoch(self):
        x, y = self.train_data
        for i in range(self.cfg.steps_per_epoch):
            rows = slice(12 * i % 96, 12 * i % 96 + 12)
            loss = F.cross_entropy(self.model(x[rows]), y[rows])
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()

    @torch.no_grad()
    def val_epoch(self):
        x, y = self.val_data
        logits = self.model.module(x)
        metrics = {
            "loss": F.cross_entropy(logits, y),
            "acc": (logits.argmax(1) == y).float().mean(),
        }
        for v in metrics.values():
            dist.reduce(v, dst=0)
            v /= self.world
        return {f"{k}_epoch": v.item() for k, v in metrics.items()}

    def maybe_save_checkpoint(self, epoch, metrics):
        if metrics["loss_epoch"] < self.best:
            self.best = metrics["loss_epoch"]
            self.ckpt.save_checkpoint(epoch, self.model, self.optim)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.train_epoch()
            metrics = self.val_epoch()
            if self.rank == 0:
                print(f"epoch {epoch}: {metrics}", flush=True)
            self.maybe_save_checkpoint(epoch, metrics)


def run():
    box = [tempfile.mkdtemp(prefix="draft_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    Trainer(TrainConfig(), box[0]).fit()
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(box[0])


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
