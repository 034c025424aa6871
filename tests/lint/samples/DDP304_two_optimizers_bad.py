"""Two networks against each other: one steps every second batch, the other every time."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EVERY = 2


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    maker = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)))
    judge = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1)))
    of_maker = torch.optim.AdamW(maker.parameters(), lr=1e-4)
    of_judge = torch.optim.AdamW(judge.parameters(), lr=1e-4)
    real = TensorDataset(torch.randn(4096, 8, generator=torch.Generator().manual_seed(3)))
    sampler = DistributedSampler(real, drop_last=True)
    loader = DataLoader(real, 16, sampler=sampler, drop_last=True)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for number, (sample,) in enumerate(loader):
            made = maker(sample)
            fooled = (judge(made) - 1).square().mean() + nn.functional.l1_loss(made, sample)
            (fooled / EVERY).backward()  # <-- DDP304
            if (number + 1) % EVERY == 0:
                of_maker.step()
                of_maker.zero_grad()
            of_judge.zero_grad()
            seen = judge(made.detach()).square().mean() + (judge(sample) - 1).square().mean()
            seen.backward()
            of_judge.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
