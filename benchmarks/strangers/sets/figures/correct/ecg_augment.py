"""ECG beats with random gain/noise augmentation; every process has its own random stream."""
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split


def seed_everything(base, rank):
    random.seed(base + rank)
    np.random.seed(base + rank)
    torch.manual_seed(base + rank)


class Beats(Dataset):
    def __init__(self, n=600):
        rng = np.random.default_rng(0)
        self.y = rng.integers(0, 3, n)
        t = np.linspace(0, 1, 40)
        self.x = np.stack([np.sin(2 * np.pi * (k + 1) * t + rng.uniform(0, 0.5)) for k in self.y]).astype("float32")

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        gain = random.uniform(0.7, 1.3)
        noise = np.random.normal(0, 0.4, 40).astype("float32")
        return torch.from_numpy(self.x[i] * np.float32(gain) + noise), int(self.y[i])


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    seed_everything(2024, rank)
    full = Beats()
    train, val = random_split(full, [480, 120], generator=torch.Generator().manual_seed(2024))
    sampler = DistributedSampler(train, seed=2024)
    loader = DataLoader(train, 20, sampler=sampler)
    val_loader = DataLoader(val, 20, sampler=DistributedSampler(val, shuffle=False))
    model = DDP(nn.Sequential(nn.Linear(40, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3)))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        hit = torch.zeros(2)
        with torch.no_grad():
            for x, y in val_loader:
                hit += torch.tensor([(model(x).argmax(1) == y).sum().item(), len(y)])
        dist.all_reduce(hit)
        if rank == 0:
            print(f"epoch {epoch} val acc {hit[0] / hit[1]:.3f} on {int(hit[1])}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
