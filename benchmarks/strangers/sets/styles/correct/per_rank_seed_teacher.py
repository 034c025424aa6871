"""Teacher-student denoising: seeds differ by process on purpose, the networks do not."""
import argparse
import copy
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Signals(Dataset):
    def __init__(self, n, length=32, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 3, generator=g) @ torch.randn(3, length, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        noise = np.random.normal(scale=0.5, size=self.x.shape[1]).astype(np.float32)
        return self.x[i] + torch.from_numpy(noise), self.x[i]


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2 ** 32)


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Net(nn.Module):
    def __init__(self, length=32, width=64):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(length, width), nn.ReLU(), nn.Dropout(0.1))
        self.dec = nn.Linear(width, length)
        self.register_buffer("mean", torch.zeros(length))

    def forward(self, x):
        return self.dec(self.enc(x - self.mean))


def build(args, rank):
    seed_all(args.seed + rank)
    student = DDP(Net())
    teacher = copy.deepcopy(student.module).requires_grad_(False).eval()
    return student, teacher


@torch.no_grad()
def set_mean(net, dataset):
    net.mean.copy_(dataset.x.mean(0))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=2e-3)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = Signals(256)
    student, teacher = build(args, rank)
    set_mean(student.module, data)
    teacher.load_state_dict(student.module.state_dict())
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, 16, sampler=sampler, drop_last=True, num_workers=1, worker_init_fn=seed_worker)
    opt = torch.optim.AdamW(student.parameters(), lr=args.lr)
    warmup = len(loader)
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for noisy, clean in loader:
            with torch.no_grad():
                target = teacher(noisy) if step >= warmup else clean
            out = student(noisy + 0.1 * torch.randn_like(noisy))
            loss = (out - clean).pow(2).mean() + 0.3 * (out - target).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                for t, s in zip(teacher.parameters(), student.module.parameters()):
                    t.lerp_(s, 0.02)
            step += 1
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
