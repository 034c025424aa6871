import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class CellImages(Dataset):
    """Counting bright cells; every access draws new noise and a new flip."""

    def __init__(self, n=192):
        rng = np.random.default_rng(3)
        self.count = rng.integers(1, 6, size=n)
        self.pos = rng.integers(0, 16, size=(n, 5, 2))

    def __len__(self):
        return len(self.count)

    def __getitem__(self, i):
        img = torch.zeros(1, 16, 16)
        for y, x in self.pos[i][:self.count[i]]:
            img[0, y, x] = 1
        if random.random() < 0.5:
            img = img.flip(-1)
        return img + 0.1 * torch.randn(img.shape), torch.tensor([img.sum().item()])


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    for seeder in (random.seed, np.random.seed, torch.manual_seed):
        seeder(100 + rank)
    data = CellImages()
    sampler = DistributedSampler(data, seed=0, drop_last=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    net = DDP(nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(2048, 1)))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for img, count in loader:
            loss = (net(img) - count).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        shared = loss.detach().clone()
        dist.reduce(shared, dst=0)
        if rank == 0:
            print(f"epoch {epoch} error {shared.item() / world:.3f}", flush=True)
    dist.destroy_process_group()


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    mp.spawn(worker, args=(2, free_port()), nprocs=2)
