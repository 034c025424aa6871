# Multi-task driving net: segmentation + depth + lane offset from one encoder, with task weights by uncertainty.
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class SharedEncoder(nn.Module):
    def __init__(self, c=10):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


class DrivingNet(nn.Module):
    def __init__(self, c=10):
        super().__init__()
        self.encoder = SharedEncoder(c)
        self.heads = nn.ModuleDict({
            "seg": nn.Conv2d(c, 4, 1),
            "depth": nn.Conv2d(c, 1, 1),
            "lane": nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 1)),
        })

    def forward(self, x):
        feat = self.encoder(x)
        return {name: head(feat) for name, head in self.heads.items()}


CRITERIA = {
    "seg": lambda out, y: F.cross_entropy(out, y),
    "depth": lambda out, y: F.smooth_l1_loss(out.squeeze(1), y),
    "lane": lambda out, y: F.mse_loss(out.squeeze(1), y),
}


def scenes(n, gen):
    img = torch.rand(n, 3, 12, 12, generator=gen)
    target = {
        "seg": (img.sum(1) * 1.3).long().clamp(max=3),
        "depth": img[:, 0] - img[:, 2],
        "lane": img[:, 1].mean((1, 2)),
    }
    return img, target


class Balancer:
    """Moving average of every task's loss; tasks that lag behind weigh more."""

    def __init__(self, tasks, decay=0.9):
        self.avg = {t: 1.0 for t in tasks}
        self.decay = decay

    def weights(self, losses):
        for t, v in losses.items():
            value = v.detach().clone()
            dist.all_reduce(value)
            self.avg[t] = self.decay * self.avg[t] + (1 - self.decay) * value.item() / dist.get_world_size()
        total = sum(self.avg.values())
        return {t: len(self.avg) * v / total for t, v in self.avg.items()}


def backward(losses, weights):
    sum(weights[task] * loss for task, loss in losses.items()).backward()


def main(opt):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(opt.seed)
    model = DDP(DrivingNet())
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    balancer = Balancer(CRITERIA)
    gen = torch.Generator().manual_seed(77 + rank)
    for step in range(opt.steps):
        img, target = scenes(opt.batch_size, gen)
        out = model(img)
        losses = {t: CRITERIA[t](out[t], target[t]) for t in CRITERIA}
        weights = balancer.weights(losses)
        optimizer.zero_grad()
        backward(losses, weights)
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(step, {t: round(v.item(), 4) for t, v in losses.items()}, flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=30)
    ap.add_argument("--batch-size", type=int, default=4)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args())
    dist.destroy_process_group()
