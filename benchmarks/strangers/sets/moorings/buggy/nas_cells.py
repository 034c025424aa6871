"""Differentiable search of a cell: network weights and architecture weights are updated in turn."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler


def make_data_loader(args):
    g = torch.Generator().manual_seed(args.seed)
    x = torch.randn(240, 12, generator=g)
    y = (x[:, :4].sum(1) > x[:, 4:8].sum(1)).long()
    part_a, part_b = random_split(TensorDataset(x, y), [120, 120], generator=torch.Generator().manual_seed(args.seed))
    loaders = []
    for part in (part_a, part_b):
        sampler = DistributedSampler(part, shuffle=True)
        loaders.append(DataLoader(part, batch_size=args.batch_size, sampler=sampler, drop_last=True))
    return loaders


class MixedOp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ops = nn.ModuleList([
            nn.Sequential(nn.Linear(dim, dim), nn.ReLU()),
            nn.Sequential(nn.Linear(dim, dim), nn.Tanh()),
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim)),
        ])

    def forward(self, x, w):
        return sum(a * op(x) for a, op in zip(w, self.ops))


class Network(nn.Module):
    def __init__(self, cells, dim=12):
        super().__init__()
        self.cells = nn.ModuleList([MixedOp(dim) for _ in range(cells)])
        self.alpha = nn.Parameter(1e-3 * torch.randn(cells, 3))
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        for cell, w in zip(self.cells, self.alpha.softmax(-1)):
            x = x + cell(x, w)
        return self.head(x)


class Trainer:
    def __init__(self, args):
        self.args = args
        self.loader_a, self.loader_b = make_data_loader(args)
        self.setup_distributed()
        torch.manual_seed(args.seed)
        net = Network(args.cells)
        arch = [net.alpha]
        weights = [p for n, p in net.named_parameters() if n != "alpha"]
        self.opt_w = torch.optim.SGD(weights, lr=args.lr, momentum=0.9)
        self.opt_a = torch.optim.Adam(arch, lr=args.arch_lr)
        self.model = DDP(net)

    def setup_distributed(self):
        if "RANK" in os.environ:
            dist.init_process_group(backend="gloo", init_method="env://")
            self.rank = dist.get_rank()
        else:
            raise SystemExit("start me with torchrun")

    def step(self, optimizer, batch):
        x, y = batch
        loss = F.cross_entropy(self.model(x), y)
        self.model.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def training(self, epoch):
        for loader in (self.loader_a, self.loader_b):
            loader.sampler.set_epoch(epoch)
        for batch_a, batch_b in zip(self.loader_a, self.loader_b):
            loss = self.step(self.opt_w, batch_a)
            if epoch >= self.args.alpha_epoch:
                self.step(self.opt_a, batch_b)
        if self.rank == 0:
            choice = self.model.module.alpha.argmax(-1).tolist()
            print(f"[epoch {epoch}] loss {loss:.3f} ops {choice}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="cell search")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--alpha-epoch", type=int, default=1)
    parser.add_argument("--cells", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--arch-lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    trainer = Trainer(args)
    for epoch in range(args.epochs):
        trainer.training(epoch)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
