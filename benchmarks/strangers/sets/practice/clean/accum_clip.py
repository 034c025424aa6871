import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

ACCUM = int(os.getenv("ACCUM", 4))


def regression_set(n=208):
    g = torch.Generator().manual_seed(8)
    x = torch.randn(n, 12, generator=g)
    return TensorDataset(x, torch.sin(x[:, :3]).sum(1, keepdim=True))


@contextlib.contextmanager
def maybe_no_sync(model, skip):
    if skip:
        with model.no_sync():
            yield
    else:
        yield


def group_size(i, n):
    """micro batches in the accumulation group that batch i belongs to"""
    tail = n % ACCUM
    return tail if tail and i >= n - tail else ACCUM


def train_epoch(model, opt, loader):
    n = len(loader)
    total = 0.0
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        boundary = (i + 1) % ACCUM == 0
        last = i + 1 == n
        with maybe_no_sync(model, skip=not (boundary or last)):
            loss = nn.functional.mse_loss(model(x), y) / group_size(i, n)
            loss.backward()
        total += loss.item() * group_size(i, n)
        if boundary or last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
    return total / n


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = regression_set()
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        value = train_epoch(model, opt, loader)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {value:.4f} over {len(loader)} batches", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
