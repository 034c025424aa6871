import os
import shutil
import tempfile
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

CACHE = os.path.join(tempfile.gettempdir(), "prep_first_s18")


@contextmanager
def main_process_first(rank):
    if rank != 0:
        dist.barrier()
    try:
        yield
    finally:
        if rank == 0:
            dist.barrier()


def load_or_build(path):
    if os.path.exists(path):
        return torch.load(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(256, 12, generator=g)
    blob = {"x": x, "y": x[:, :2].prod(1, keepdim=True)}
    torch.save(blob, path)
    return blob


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 0:
        shutil.rmtree(CACHE, ignore_errors=True)
        dist.barrier()
    else:
        dist.barrier()
    with main_process_first(rank):
        blob = load_or_build(os.path.join(CACHE, "train.pt"))

    torch.manual_seed(0)
    data = TensorDataset(blob["x"], blob["y"])
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        mean = loss.detach().clone()
        dist.reduce(mean, dst=0)
        if rank == 0:
            print(f"epoch {epoch} loss {mean.item() / dist.get_world_size():.4f}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(CACHE)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
