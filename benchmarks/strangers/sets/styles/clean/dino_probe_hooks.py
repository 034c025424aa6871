"""Self-distillation with no labels on toy images: multi-crop, centred teacher, runner with hooks."""
import argparse
import copy
from collections import namedtuple

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

Hook = namedtuple("Hook", "fn when everywhere")
HOOKS = []


def hook(when, everywhere=True):
    def register(fn):
        HOOKS.append(Hook(fn, when, everywhere))
        return fn
    return register


def get_args_parser():
    p = argparse.ArgumentParser("dino-toy")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--out-dim", type=int, default=32)
    p.add_argument("--momentum-teacher", type=float, default=0.99)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    return p


class Crops(Dataset):
    """Two global views and two local ones of a noisy pattern."""

    def __init__(self, n, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.base = torch.randn(n, 3, 8, 8, generator=g)

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        x = F.interpolate(self.base[i:i + 1], scale_factor=2)[0]
        big = [x + 0.1 * torch.randn_like(x) for _ in range(2)]
        small = []
        for _ in range(2):
            top, left = np.random.randint(0, 8, size=2)
            crop = x[:, top:top + 8, left:left + 8].unsqueeze(0)
            small.append(F.interpolate(crop, size=16)[0])
        return torch.stack(big + small)


class Backbone(nn.Module):
    def __init__(self, out_dim):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.Conv2d(16, 32, 2, 2), nn.GELU())
        self.head = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 24))
        self.last = nn.utils.parametrizations.weight_norm(nn.Linear(24, out_dim, bias=False))

    def forward(self, x):
        h = self.stem(x).mean((2, 3))
        return self.last(F.normalize(self.head(h), dim=-1))


class DINOLoss(nn.Module):
    def __init__(self, out_dim, ncrops, teacher_temp=0.05, student_temp=0.1, center_momentum=0.9):
        super().__init__()
        self.ncrops, self.tt, self.st = ncrops, teacher_temp, student_temp
        self.center_momentum = center_momentum
        self.register_buffer("center", torch.zeros(1, out_dim))

    def cross_views(self, student, teacher):
        student = (student / self.st).chunk(self.ncrops)
        teacher = F.softmax((teacher - self.center) / self.tt, dim=-1).detach().chunk(2)
        total, terms = 0.0, 0
        for i, q in enumerate(teacher):
            for j, s in enumerate(student):
                if i != j:
                    total = total + torch.sum(-q * F.log_softmax(s, dim=-1), dim=-1).mean()
                    terms += 1
        return total / terms

    def forward(self, student, teacher):
        loss = self.cross_views(student, teacher)
        self.update_center(teacher)
        return loss

    @torch.no_grad()
    def update_center(self, teacher):
        batch = teacher.sum(0, keepdim=True)
        dist.all_reduce(batch)
        batch = batch / (len(teacher) * dist.get_world_size())
        self.center = self.center * self.center_momentum + batch * (1 - self.center_momentum)


class Runner:
    def __init__(self, args):
        self.args, self.rank = args, dist.get_rank()
        student = Backbone(args.out_dim)
        self.teacher = copy.deepcopy(student).requires_grad_(False)
        self.student = DDP(student)
        self.criterion = DINOLoss(args.out_dim, ncrops=4)
        self.optim = torch.optim.AdamW(self.student.parameters(), lr=args.lr)
        data = Crops(192)
        self.sampler = DistributedSampler(data, shuffle=True)
        self.loader = DataLoader(data, args.batch_size, sampler=self.sampler, drop_last=True)
        self.held_out = DataLoader(Crops(32, seed=9), 16)
        self.total = args.epochs * len(self.loader)
        self.it, self.epoch, self.history = 0, 0, []

    def fire(self, when):
        for h in HOOKS:
            if h.when == when and (h.everywhere or self.rank == 0):
                h.fn(self)

    def views(self, images):
        flat = images.transpose(0, 1)
        return flat[:2].flatten(0, 1), flat.flatten(0, 1)

    def fit(self):
        for self.epoch in range(self.args.epochs):
            self.sampler.set_epoch(self.epoch)
            for images in self.loader:
                self.fire("before_step")
                globals_, all_ = self.views(images)
                with torch.no_grad():
                    target = self.teacher(globals_)
                loss = self.criterion(self.student(all_), target)
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
                self.history.append(loss.item())
                self.it += 1
                self.fire("after_step")
            self.fire("after_epoch")
            dist.barrier()


@hook("before_step")
def cosine_lr(runner):
    for group in runner.optim.param_groups:
        group["lr"] = runner.args.lr * 0.5 * (1 + np.cos(np.pi * runner.it / runner.total))


@hook("after_step")
def ema(runner):
    m = 1 - (1 - runner.args.momentum_teacher) * (np.cos(np.pi * runner.it / runner.total) + 1) / 2
    with torch.no_grad():
        for q, k in zip(runner.student.module.parameters(), runner.teacher.parameters()):
            k.mul_(m).add_((1 - m) * q.detach())


@hook("after_epoch", everywhere=False)
@torch.no_grad()
def collapse_probe(runner):
    """Entropy of the averaged teacher output; near zero means everything maps to one prototype."""
    mean, terms = 0.0, []
    for images in runner.held_out:
        globals_, all_ = runner.views(images)
        target = runner.teacher(globals_)
        terms.append(runner.criterion.cross_views(runner.student.module(all_), target).item())
        mean = mean + F.softmax((target - runner.criterion.center) / runner.criterion.tt, -1).mean(0)
    mean = mean / len(terms)
    entropy = -(mean * mean.clamp_min(1e-9).log()).sum().item()
    print(f"epoch {runner.epoch} held-out {np.mean(terms):.4f} entropy {entropy:.3f} "
          f"train {np.mean(runner.history[-6:]):.4f}", flush=True)


def main():
    args = get_args_parser().parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    runner = Runner(args)
    torch.manual_seed(1 + dist.get_rank())
    np.random.seed(1 + dist.get_rank())
    runner.fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
