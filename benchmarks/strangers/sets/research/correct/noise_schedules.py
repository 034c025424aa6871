"""Denoiser: model from one seed, noise and time steps from a stream of its own on every rank."""
import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

STEPS = 50
ALPHA = torch.cos(torch.linspace(0, 1.5, STEPS)) ** 2


class Rings(Dataset):
    def __init__(self, rank):
        self.theta = np.random.default_rng(0).uniform(0, 6.28, 200)
        self.jitter = np.random.default_rng(1_000 + rank)

    def __len__(self):
        return len(self.theta)

    def __getitem__(self, i):
        r = 1 + 0.05 * self.jitter.standard_normal()
        return torch.tensor([r * np.cos(self.theta[i]), r * np.sin(self.theta[i])], dtype=torch.float)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Dropout(0.05), nn.Linear(32, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, t[:, None] / STEPS], 1))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    fit(rank)
    dist.destroy_process_group()


def fit(rank):
    torch.manual_seed(0)
    model = DDP(Denoiser())
    torch.manual_seed(0 + 7919 * (rank + 1))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    data = Rings(rank)
    sampler = DistributedSampler(data, seed=0)
    loader = DataLoader(data, batch_size=20, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        log = torch.zeros(2)
        for x in loader:
            t = torch.randint(STEPS, (len(x),))
            eps = torch.randn_like(x)
            a = ALPHA[t][:, None]
            loss = nn.functional.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * eps, t.float()), eps)
            opt.zero_grad()
            loss.backward()
            opt.step()
            log += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(log)
        if rank == 0:
            print(f"epoch {epoch}: {log[0] / log[1]:.4f}", flush=True)


if __name__ == "__main__":
    main()
