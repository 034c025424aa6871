"""Molecular property regression with a small message-passing network; callbacks around a plain loop."""
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


class RandomMolecules(Dataset):
    def __init__(self, n, seed, atoms=9, kinds=5):
        g = torch.Generator().manual_seed(seed)
        self.kind = torch.randint(0, kinds, (n, atoms), generator=g)
        edges = (torch.rand(n, atoms, atoms, generator=g) < 0.25).float().triu(1)
        self.adj = edges + edges.transpose(1, 2)
        weight = torch.tensor([0.5, -0.3, 0.8, 0.1, -0.6])
        w = weight[self.kind]
        y = (w.unsqueeze(1) * self.adj * w.unsqueeze(2)).sum((1, 2)) + w.sum(1)
        self.y = y + 0.3 * torch.randn(n, generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.kind[i], self.adj[i], self.y[i]


class MPNN(nn.Module):
    def __init__(self, kinds=5, dim=32, rounds=2):
        super().__init__()
        self.embed = nn.Embedding(kinds, dim)
        self.message = nn.ModuleList(nn.Linear(dim, dim) for _ in range(rounds))
        self.update = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(rounds))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, kind, adj):
        h = self.embed(kind)
        for msg, upd in zip(self.message, self.update):
            m = adj @ F.relu(msg(h))
            h = h + F.relu(upd(torch.cat([h, m], -1)))
        return self.readout(h.sum(1)).squeeze(-1)


class Callback:
    def on_fit_start(self, trainer):
        pass

    def on_epoch_end(self, trainer, logs):
        pass


class LearningRateDrop(Callback):
    """Halves the step size when the watched value has stalled."""

    def __init__(self, monitor="val_mae", patience=0, factor=0.5):
        self.monitor, self.kw = monitor, dict(patience=patience, factor=factor, threshold=1e-2)

    def on_fit_start(self, trainer):
        self.sched = torch.optim.lr_scheduler.ReduceLROnPlateau(trainer.opt, **self.kw)

    def on_epoch_end(self, trainer, logs):
        self.sched.step(logs[self.monitor])
        logs["lr"] = trainer.opt.param_groups[0]["lr"]


class Printer(Callback):
    def __init__(self, rank):
        self.rank = rank

    def on_epoch_end(self, trainer, logs):
        if self.rank == 0:
            print(" ".join(f"{k} {v:.5g}" for k, v in logs.items()), flush=True)


class Trainer:
    def __init__(self, net, lr, callbacks):
        self.net = net
        self.model = DDP(net)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.callbacks = callbacks

    def emit(self, event, *args):
        for cb in self.callbacks:
            getattr(cb, event)(self, *args)

    def train_epoch(self, loader):
        total = torch.zeros(2)
        for kind, adj, y in loader:
            loss = F.smooth_l1_loss(self.model(kind, adj), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    @torch.no_grad()
    def validate(self, loader):
        err, n = 0.0, 0
        for kind, adj, y in loader:
            err += (self.net(kind, adj) - y).abs().sum().item()
            n += len(y)
        total = torch.tensor([err, float(n)])
        dist.all_reduce(total)
        return (total[0] / total[1]).item()

    def fit(self, train, val, sampler, epochs):
        self.emit("on_fit_start")
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            logs = {"epoch": epoch, "loss": self.train_epoch(train)}
            logs["val_mae"] = self.validate(val)
            self.emit("on_epoch_end", logs)


def worker(rank, world, port, args):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(11)
    train_set, val_set = RandomMolecules(256, seed=0), RandomMolecules(60, seed=1)
    sampler = DistributedSampler(train_set, world, rank)
    train = DataLoader(train_set, args.batch_size, sampler=sampler, drop_last=True)
    val = DataLoader(val_set, 16, sampler=DistributedSampler(val_set, world, rank, shuffle=False))
    trainer = Trainer(MPNN(), args.lr, [LearningRateDrop(), Printer(rank)])
    trainer.fit(train, val, sampler, args.epochs)
    dist.barrier()
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=8e-3)
    p.add_argument("--gpus", type=int, default=2)
    args = p.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(args.gpus, port, args), nprocs=args.gpus)


if __name__ == "__main__":
    main()
