"""Hail size nowcasting from radar volumes, early stopping on the held-out storms.

    torchrun --nproc_per_node=3 hail_radar.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class EarlyStop:
    def __init__(self, patience=2, delta=1e-3):
        self.best, self.bad, self.patience, self.delta = float("inf"), 0, patience, delta

    def update(self, value):
        if value < self.best - self.delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def storms(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, 8, 8, generator=g)
    y = x[:, 0].amax((1, 2)) + 0.1 * torch.randn(n, generator=g)
    return x, y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3, padding=1)
        self.bn = nn.BatchNorm2d(12)
        self.fc = nn.Linear(12, 1)

    def forward(self, x):
        return self.fc(torch.relu(self.bn(self.conv(x))).amax((2, 3))).squeeze(1)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    train = TensorDataset(*storms(300, 0))
    sampler = DistributedSampler(train, seed=0)
    loader = DataLoader(train, 20, sampler=sampler)
    model = DDP(Net())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    stopper = EarlyStop() if rank == 0 else None
    vx, vy = storms(200, 1)

    stop = torch.zeros(1, dtype=torch.int64)
    for epoch in range(12):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            model.eval()
            with torch.no_grad():
                val = nn.functional.mse_loss(model.module(vx), vy).item()
            model.train()
            stop.fill_(int(stopper.update(val)))
            print(f"epoch {epoch} held-out mse {val:.4f}")
        dist.broadcast(stop, src=0)
        if stop.item():
            if rank == 0:
                print("stopping at epoch", epoch)
            break
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
