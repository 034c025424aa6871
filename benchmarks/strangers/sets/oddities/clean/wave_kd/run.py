"""Distil a wide vocoder into a narrow one; student weights are averaged."""
import argparse
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from ema import SlowWeights


def vocoder(width):
    return nn.Sequential(nn.Conv1d(4, width, 3, padding=1), nn.Tanh(),
                         nn.Conv1d(width, width, 3, padding=2, dilation=2), nn.Tanh(),
                         nn.Conv1d(width, 1, 1))


def mels(batch, g, frames=40):
    f = torch.rand(batch, 4, 1, generator=g) * 2 + 0.2
    t = torch.arange(frames) / 4
    return torch.sin(2 * math.pi * f * t) + 0.05 * torch.randn(batch, 4, frames, generator=g)


def parameter_norm(net):
    return torch.stack([p.detach().norm() for p in net.parameters()]).norm().item()


def main(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--lr", type=float, default=5e-3)
    a = ap.parse_args(argv)

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(123)
    teacher = vocoder(24).eval().requires_grad_(False)
    student = vocoder(6)
    model = DDP(student)
    slow = SlowWeights(student)
    opt = torch.optim.Adam(model.parameters(), lr=a.lr)
    g = torch.Generator().manual_seed(rank)
    for step in range(1, a.steps + 1):
        x = mels(a.batch, g)
        loss = nn.functional.l1_loss(model(x), teacher(x))
        opt.zero_grad()
        loss.backward()
        opt.step()
        slow.update()
        if step % 20 == 0:
            print(f"rank {rank} step {step} l1 {loss.item():.4f} |w| {parameter_norm(student):.5f}", flush=True)
    if rank == 0:
        torch.save(slow.avg.state_dict(), "/dev/null")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
