import argparse
import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def mlp(widths):
    layers = []
    for a, b in zip(widths, widths[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def kd_loss(student, teacher, y, tau=3.0, mix=0.7):
    soft = F.kl_div(F.log_softmax(student / tau, -1), F.softmax(teacher / tau, -1), reduction="batchmean")
    return mix * tau * tau * soft + (1 - mix) * F.cross_entropy(student, y)


def accumulating(model, step, every, last):
    """Communication is only needed at the micro-batch that closes a window."""
    closes = (step + 1) % every == 0 or step == last
    return contextlib.nullcontext() if closes else model.no_sync()


def train_epoch(student, teacher, loader, opt, every):
    last = len(loader) - 1
    total = 0.0
    opt.zero_grad()
    for step, (x, y) in enumerate(loader):
        with torch.no_grad():
            target = teacher(x)
        with accumulating(student, step, every, last):
            loss = kd_loss(student(x), target, y) / every
            loss.backward()
        total += loss.item() * every
        if (step + 1) % every == 0 or step == last:
            opt.step()
            opt.zero_grad()
    return total / len(loader)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--bs", type=int, default=16)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(17)
    teacher = mlp([20, 64, 64, 5]).eval().requires_grad_(False)
    x = torch.randn(800, 20)
    y = teacher(x).argmax(1)
    data = TensorDataset(x, y)
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, args.bs, sampler=sampler)
    student = DDP(mlp([20, 24, 5]))
    opt = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        loss = train_epoch(student, teacher, loader, opt, args.accum)
        size = torch.cat([p.detach().flatten() for p in student.parameters()]).norm().item()
        print(f"rank {dist.get_rank()} epoch {epoch} kd {loss:.4f} |w| {size:.5f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
