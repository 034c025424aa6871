"""Only the chief evaluates and keeps checkpoints; what it decides about the rate and the end is broadcast."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def spirals(n, seed):
    g = torch.Generator().manual_seed(seed)
    t, y = torch.rand(n, generator=g) * 3, torch.randint(0, 2, (n,), generator=g)
    angle = 2 * t + 3.14159 * y
    x = torch.stack([t * angle.cos(), t * angle.sin()], 1) + 0.05 * torch.randn(n, 2, generator=g)
    return TensorDataset(x, y)


class Chief:
    """Evaluates the bare module, writes the best one, and says how to go on."""

    def __init__(self, net, data, folder, patience):
        self.net, self.x, self.y = net, *data.tensors
        self.folder, self.patience, self.best, self.bad = folder, patience, 0.0, 0

    @torch.no_grad()
    def verdict(self, epoch):
        self.net.eval()
        acc = (self.net(self.x).argmax(1) == self.y).float().mean().item()
        self.net.train()
        if acc > self.best:
            self.best, self.bad = acc, 0
            torch.save(self.net.state_dict(), os.path.join(self.folder, "best.pt"))
        else:
            self.bad += 1
        print(f"epoch {epoch} acc {acc:.3f} bad {self.bad}", flush=True)
        return [self.bad >= self.patience, 0.5 if self.bad else 1.0]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=14)
    p.add_argument("--lr", type=float, default=2e-2)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(4)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 48),
                                                  nn.ReLU(), nn.Linear(48, 2)))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    train = spirals(768, 0)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, 32, sampler=sampler)
    chief = None
    if rank == 0:
        chief = Chief(model.module, spirals(256, 1), tempfile.mkdtemp(prefix="chief_"), patience=3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()
        verdict = chief.verdict(epoch) if chief else [None, None]
        dist.broadcast_object_list(verdict, src=0)
        stop, factor = verdict
        for group in opt.param_groups:
            group["lr"] *= factor
        if stop:
            break
    where = [chief.folder if chief else None]
    dist.broadcast_object_list(where, src=0)
    model.module.load_state_dict(torch.load(os.path.join(where[0], "best.pt")))
    dist.barrier()
    if rank == 0:
        os.remove(os.path.join(where[0], "best.pt"))
        print(f"best {chief.best:.3f}", flush=True)
    del model, opt
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
