#!/usr/bin/env python
# Robust digit classifier: train on examples moved towards the decision boundary.
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CFG = {
    "data": {"n": 480, "side": 8, "classes": 5, "seed": 9},
    "attack": {"eps": 0.6, "step": 0.12, "max_iter": 8, "enough": 0.45},
    "optim": {"lr": 0.05, "momentum": 0.9},
    "epochs": 2,
    "batch": 24,
}


def blobs(n, side, classes, seed):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(classes, 1, side, side, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    x = proto[y] + 0.9 * torch.randn(n, 1, side, side, generator=g)
    return TensorDataset(x, y)


def convnet(classes):
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Flatten(), nn.Linear(24 * 16, classes))


class Perturb:
    """Iterative sign attack inside an eps-ball; stops once the batch is fooled."""

    def __init__(self, classifier, eps, step, max_iter, enough):
        self.f = classifier
        self.eps, self.step, self.max_iter, self.enough = eps, step, max_iter, enough

    def __call__(self, x, y):
        was_training = self.f.training
        self.f.eval()
        delta = torch.zeros_like(x).uniform_(-self.step, self.step)
        for _ in range(self.max_iter):
            delta.requires_grad_(True)
            logits = self.f(x + delta)
            fooled = (logits.argmax(1) != y).float().mean()
            if fooled >= self.enough:
                break
            g, = torch.autograd.grad(F.cross_entropy(logits, y), delta)
            delta = (delta.detach() + self.step * g.sign()).clamp(-self.eps, self.eps)
        self.f.train(was_training)
        return (x + delta).detach()


class Robust:
    def __init__(self, rank, world):
        self.rank = rank
        d = CFG["data"]
        data = blobs(**d)
        self.sampler = DistributedSampler(data, world, rank, seed=4)
        self.loader = DataLoader(data, CFG["batch"], sampler=self.sampler)
        torch.manual_seed(17)
        self.net = DDP(convnet(d["classes"]))
        self.attack = Perturb(self.net.module, **CFG["attack"])
        self.opt = torch.optim.SGD(self.net.parameters(), **CFG["optim"])

    def epoch(self, e):
        self.sampler.set_epoch(e)
        hit = torch.zeros(2)
        for x, y in self.loader:
            adv = self.attack(x, y)
            out = self.net(adv)
            loss = F.cross_entropy(out, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            hit += torch.tensor([(out.argmax(1) == y).sum().item(), len(y)])
        dist.all_reduce(hit)
        if self.rank == 0:
            print(f"[{e}] robust acc {hit[0] / hit[1]:.3f}", flush=True)


def worker(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("ATTACK_PORT", "29641"))
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=25))
    job = Robust(rank, world)
    for e in range(CFG["epochs"]):
        job.epoch(e)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)
