"""Soil moisture from gauges; stations differ in record length, so do the shards.

    torchrun --nproc_per_node=2 soil_moisture.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def station_batches(rank, size=16):
    """Every process owns its stations; the number of full batches is not equal."""
    days = (420, 290, 350, 510)[rank]
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(days, 9, generator=g)
    y = torch.sigmoid(x[:, :3].sum(1) - 0.5 * x[:, 3])
    for i in range(0, days - size + 1, size):
        yield x[i:i + size], y[i:i + size]


class Gauge(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(9, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, x):
        return torch.sigmoid(self.f(x)).squeeze(-1)


def score(model, days=200):
    """Error on a station that nobody owns."""
    g = torch.Generator().manual_seed(1000)
    x = torch.randn(days, 9, generator=g)
    y = torch.sigmoid(x[:, :3].sum(1) - 0.5 * x[:, 3])
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def fit(rank, epochs=3):
    model = DDP(Gauge())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        seen, total = 0, 0.0
        with Join([model]):
            for x, y in station_batches(rank):
                opt.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                opt.step()
                seen += len(x)
                total += loss.item() * len(x)
        stats = torch.tensor([total, float(seen)])
        dist.all_reduce(stats)
        if rank == 0:
            print(f"epoch {epoch}: mse {stats[0] / stats[1]:.5f} over {int(stats[1])} station days, unseen {score(model.module):.5f}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    fit(rank)
    dist.barrier()
    dist.destroy_process_group()
