import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from loaders import make_data_loader


class MixedOp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ops = nn.ModuleList([nn.Linear(dim, dim), nn.Sequential(nn.Linear(dim, dim), nn.ReLU()), nn.Identity()])
        self.alpha = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        w = self.alpha.softmax(0)
        return sum(wi * op(x) for wi, op in zip(w, self.ops))


class SuperNet(nn.Module):
    def __init__(self, dim=16, cells=2):
        super().__init__()
        self.stem = nn.Linear(8, dim)
        self.cells = nn.ModuleList(MixedOp(dim) for _ in range(cells))
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        x = self.stem(x)
        for c in self.cells:
            x = c(x)
        return self.head(x)


class Trainer:
    def __init__(self, args):
        self.args = args
        if args.dist:
            dist.init_process_group("gloo")
        self.loader_a, self.loader_b, self.val_loader = make_data_loader(args)
        self.rank = dist.get_rank() if args.dist else 0
        torch.manual_seed(0)
        net = SuperNet()
        self.net = DDP(net) if args.dist else net
        alphas = [p for n, p in self.net.named_parameters() if n.endswith("alpha")]
        weights = [p for n, p in self.net.named_parameters() if not n.endswith("alpha")]
        self.w_opt = torch.optim.SGD(weights, lr=0.05, momentum=0.9)
        self.a_opt = torch.optim.Adam(alphas, lr=3e-3)
        self.ce = nn.CrossEntropyLoss()

    def _step(self, batch, opt):
        x, y = batch
        self.net.zero_grad()
        loss = self.ce(self.net(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    def training(self, epoch):
        total = 0.0
        for ba, bb in zip(self.loader_a, self.loader_b):
            total += self._step(ba, self.w_opt)
            if epoch >= self.args.alpha_epoch:
                self._step(bb, self.a_opt)
        if self.rank == 0:
            print(f"epoch {epoch} loss {total / len(self.loader_a):.3f}", flush=True)

    @torch.no_grad()
    def validation(self):
        net = self.net.module if self.args.dist else self.net
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        if self.rank == 0:
            print(f"val acc {hits / self.args.n_val:.3f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--alpha-epoch", type=int, default=1)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--n-train", type=int, default=256)
    p.add_argument("--n-val", type=int, default=64)
    args = p.parse_args()
    args.dist = int(os.environ.get("WORLD_SIZE", 1)) > 1
    trainer = Trainer(args)
    for epoch in range(args.epochs):
        trainer.training(epoch)
        trainer.validation()
    if args.dist:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
