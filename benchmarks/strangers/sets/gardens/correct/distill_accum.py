import argparse
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def mlp(width):
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 5))


def windows(n, size):
    """(index, window length, closes the window) for n batches in windows of `size`."""
    for k in range(n):
        first = k - k % size
        yield k, min(size, n - first), k % size == size - 1 or k == n - 1


def main(a):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(41)
    teacher = mlp(64).eval().requires_grad_(False)
    student = DistributedDataParallel(mlp(12))
    opt = torch.optim.SGD(student.parameters(), lr=a.lr, momentum=0.9)
    data = TensorDataset(torch.randn(a.n, 10, generator=torch.Generator().manual_seed(3)))
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, a.bs, sampler=sampler, drop_last=True)
    for epoch in range(a.epochs):
        sampler.set_epoch(epoch)
        tot = torch.zeros(2)
        for (x,), (k, length, closing) in zip(loader, windows(len(loader), a.accum)):
            with contextlib.nullcontext() if closing else student.no_sync():
                soft = (teacher(x) / a.temp).softmax(1)
                loss = F.kl_div((student(x) / a.temp).log_softmax(1), soft, reduction="batchmean")
                (loss / length).backward()
            if closing:
                nn.utils.clip_grad_norm_(student.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
            tot += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(tot)
        if rank == 0:
            print(f"epoch {epoch} kl {(tot[0] / tot[1]).item():.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--n", type=int, default=700)
    p.add_argument("--bs", type=int, default=16)
    p.add_argument("--accum", type=int, default=4)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=0.5)
    p.add_argument("--temp", type=float, default=0.5)
    main(p.parse_args())
