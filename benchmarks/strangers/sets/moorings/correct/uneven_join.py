"""Reaction yields: laboratories (workers) have different numbers of experiments, training runs under join()."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def experiments(rank):
    n = [130, 75, 98, 41][rank % 4]
    g = torch.Generator().manual_seed(60 + rank)
    x = torch.rand(n, 10, generator=g)
    y = (x[:, 0] * x[:, 3] - 0.5 * x[:, 7]).unsqueeze(1)
    return TensorDataset(x, y)


class YieldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)


def train(rank, epochs=3):
    torch.manual_seed(0)
    model = DDP(YieldNet())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(experiments(rank), batch_size=16, shuffle=True)
    for epoch in range(epochs):
        steps, running = 0, 0.0
        with model.join():
            for x, y in loader:
                loss = nn.functional.mse_loss(model(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                steps += 1
                running += loss.item()
        totals = torch.tensor([running, float(steps)])
        dist.all_reduce(totals)
        print(f"[{rank}] epoch {epoch}: {steps} of {int(totals[1])} steps, loss {(totals[0] / totals[1]).item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(int(os.environ["RANK"]))
    dist.destroy_process_group()
