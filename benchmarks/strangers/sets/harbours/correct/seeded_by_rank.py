"""Seeds differ per rank for the augmentation; the sampler has its own common seed and DDP sends the weights."""
import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Shapes(Dataset):
    def __init__(self, n=256):
        g = torch.Generator().manual_seed(0)
        self.y = torch.arange(n) % 2
        self.x = 0.3 * torch.randn(n, 1, 10, 10, generator=g)
        self.x[self.y == 0, :, 4:6] += 1.0
        self.x[self.y == 1, :, :, 4:6] += 1.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.x[i]
        if random.random() < 0.5:
            img = img.flip(-1)
        return img + 0.1 * torch.randn_like(img), self.y[i]


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def main():
    rank = dist.get_rank()
    set_seed(2024 + rank)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 2))
    model = DDP(net)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    data = Shapes()
    sampler = DistributedSampler(data, seed=2024)
    loader = DataLoader(data, 16, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if rank == 0:
            print(f"epoch {epoch} loss on rank 0 {total / len(loader):.4f}", flush=True)
            torch.save(net.state_dict(), "shapes.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
