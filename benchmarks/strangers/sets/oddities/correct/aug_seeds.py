"""Same start weights on all processes, other augmentation on each."""
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Digits(Dataset):
    def __init__(self, aug, n=128):
        g = torch.Generator().manual_seed(4)
        self.proto = torch.randn(10, 1, 8, 8, generator=g)
        self.y = torch.randint(0, 10, (n,), generator=g)
        self.aug = aug

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        img = self.proto[self.y[i]]
        if self.aug.random() < 0.5:
            img = torch.roll(img, self.aug.choice([-1, 1]), dims=-1)
        return img + 0.2 * torch.randn(img.shape), self.y[i]


def seed_all(s):
    random.seed(s)
    torch.manual_seed(s)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    seed_all(42)
    net = DDP(nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(216, 10)))
    seed_all(42 + 1000 * rank)
    ds = Digits(random.Random(42 + rank))
    sampler = DistributedSampler(ds, seed=42)
    loader = DataLoader(ds, batch_size=16, sampler=sampler)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"rank {rank} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()
