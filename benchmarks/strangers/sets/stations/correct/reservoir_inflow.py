"""Daily inflow forecasts for a chain of reservoirs.

    torchrun --nproc_per_node 2 reservoir_inflow.py --windows 12

Each optimisation window covers the three flow regimes of the basin (rain fed,
snow melt, base flow).  A shared encoder feeds one readout per regime.
"""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

REGIMES = ("snowmelt", "baseflow", "rain")


class InflowNet(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.encoder = nn.GRU(n_in, hidden, batch_first=True)
        self.readout = nn.ModuleDict({
            name: nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
            for name in REGIMES
        })

    def forward(self, series, regime):
        states, _ = self.encoder(series)
        return self.readout[regime](states[:, -1]).squeeze(-1)


class Basin:
    """Synthetic gauge records, one stream per process."""

    def __init__(self, rank, n_in, length, batch):
        self.gen = torch.Generator().manual_seed(9000 + rank)
        self.n_in, self.length, self.batch = n_in, length, batch
        self.coef = {
            "snowmelt": torch.linspace(-1.0, 1.0, n_in),
            "baseflow": torch.linspace(0.5, 0.1, n_in),
            "rain": torch.linspace(1.5, -0.5, n_in),
        }

    def draw(self, regime):
        x = torch.randn(self.batch, self.length, self.n_in, generator=self.gen)
        y = (x[:, -3:].mean(dim=1) * self.coef[regime]).sum(dim=1)
        y = y + 0.05 * torch.randn(self.batch, generator=self.gen)
        return x, y


def train_window(model, basin, optimizer, loss_fn):
    optimizer.zero_grad(set_to_none=True)
    seen = 0.0
    last = len(REGIMES) - 1
    for i, regime in enumerate(REGIMES):
        x, y = basin.draw(regime)
        scope = contextlib.nullcontext() if i == last else model.no_sync()
        with scope:
            loss = loss_fn(model(x, regime), y) / len(REGIMES)
            loss.backward()
        seen += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return seen


@torch.no_grad()
def validate(model, basin, loss_fn):
    model.eval()
    scores = torch.zeros(len(REGIMES))
    for i, regime in enumerate(REGIMES):
        x, y = basin.draw(regime)
        scores[i] = loss_fn(model.module(x, regime), y)
    dist.all_reduce(scores)
    model.train()
    return scores / dist.get_world_size()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--windows", type=int, default=12)
    ap.add_argument("--hidden", type=int, default=24)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--lr", type=float, default=4e-3)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(17)

    net = InflowNet(6, args.hidden)
    model = DDP(net, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loss_fn = nn.SmoothL1Loss()
    basin = Basin(rank, 6, 14, args.batch)
    holdout = Basin(rank + 100, 6, 14, 64)

    for window in range(args.windows):
        loss = train_window(model, basin, optimizer, loss_fn)
        if (window + 1) % 4 == 0:
            scores = validate(model, holdout, loss_fn)
            if rank == 0:
                text = "  ".join(f"{n} {s:.4f}" for n, s in zip(REGIMES, scores.tolist()))
                print(f"window {window + 1:3d}  train {loss:.4f}  {text}", flush=True)

    if rank == 0:
        torch.save(net.state_dict(), os.path.join("/tmp", "inflow_final.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
