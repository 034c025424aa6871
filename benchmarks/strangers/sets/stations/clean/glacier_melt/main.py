"""Melt model with separate surface schemes for clean ice and debris cover."""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import comm
from data import Stations

CONFIG = {
    "world": 2,
    "epochs": 4,
    "hidden": 16,
    "lr": 0.01,
    "port": "29731",
}


class MeltModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(7, hidden), nn.ReLU())
        self.ice = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))
        self.debris = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x, surface):
        h = self.energy(x)
        scheme = self.debris if surface == "debris" else self.ice
        return scheme(h).squeeze(-1)


def run(rank, cfg):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = cfg["port"]
    dist.init_process_group("gloo", rank=rank, world_size=cfg["world"])
    torch.set_num_threads(1)
    torch.manual_seed(3 + rank)

    model = MeltModel(cfg["hidden"])
    comm.sync_initial(model)
    opt = torch.optim.SGD(model.parameters(), lr=cfg["lr"], momentum=0.9)
    stations = Stations(rank)
    loss_fn = nn.MSELoss()

    for epoch in range(cfg["epochs"]):
        total = 0.0
        for surface, x, y in stations:
            opt.zero_grad()
            loss = loss_fn(model(x, surface), y)
            loss.backward()
            comm.average_gradients(model)
            opt.step()
            total += loss.item()
        mean = comm.mean_scalar(total / len(stations))
        if rank == 0:
            print(f"epoch {epoch}  mse {mean:.4f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(CONFIG,), nprocs=CONFIG["world"])
