import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class Plateau:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def update(self, value):
        if value < self.best - 1e-4:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


@torch.no_grad()
def val_loss(model, loader):
    model.eval()
    acc = torch.zeros(2)
    for x, y in loader:
        acc += torch.tensor([nn.functional.mse_loss(model(x), y, reduction="sum").item(), float(len(x))])
    model.train()
    dist.all_reduce(acc)
    return (acc[0] / acc[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    g = torch.Generator().manual_seed(0)
    x = torch.randn(320, 6, generator=g)
    full = TensorDataset(x, x[:, :1] * x[:, 1:2] + 0.3 * torch.randn(320, 1, generator=g))
    seed_all(10 + rank)
    train_set, val_set = random_split(full, [256, 64], generator=torch.Generator().manual_seed(5))
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=16, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=16, sampler=DistributedSampler(val_set, shuffle=False))
    model = DDP(nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    plateau = Plateau(patience=2)

    for epoch in range(30):
        sampler.set_epoch(epoch)
        for xb, yb in loader:
            noise = 0.05 * torch.randn_like(xb)
            loss = nn.functional.mse_loss(model(xb + noise), yb)
            if not torch.isfinite(loss):
                raise RuntimeError("loss diverged")
            opt.zero_grad()
            loss.backward()
            opt.step()
        value = val_loss(model.module, val_loader)
        if rank == 0:
            print(f"epoch {epoch} val {value:.4f}", flush=True)
        if plateau.update(value):
            break
    dist.barrier()
    if rank == 0:
        print("best", round(plateau.best, 4), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
