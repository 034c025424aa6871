import os

import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WORLD = int(os.environ.get("WORLD_SIZE", 1))
RANK = int(os.environ.get("RANK", 0))


class Regressor(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)
        self.layer = nn.Linear(4, 1)
        nn.init.zeros_(self.layer.weight)
        nn.init.zeros_(self.layer.bias)

    def forward(self, x):
        return self.layer((x - self.mean) / self.std)


def data():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(128, 4, generator=g) * 3 + 1
    return x, (x @ torch.tensor([0.5, -1.0, 2.0, 0.1])).unsqueeze(1)


def step(model, criterion, optimizer, x, y):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    dist.init_process_group("gloo")
    x, y = data()
    model = DistributedDataParallel(Regressor(x.mean(0), x.std(0)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    criterion = nn.MSELoss()
    mine = slice(RANK, None, WORLD)
    for _ in range(10):
        step(model, criterion, optimizer, x[mine], y[mine])
    if RANK == 0:
        print("weights", [round(v, 4) for v in model.module.layer.weight.flatten().tolist()], flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
