"""Dose response regression on a plate screen."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from loader import PlateBalancedBatches, PlateDataset

CONFIG = {
    "epochs": 6,
    "batches": 3,
    "per_plate": 2,
    "lr": 5e-3,
    "hidden": 32,
}


class Loop:
    def __init__(self, model, loader, lr):
        self.model = model
        self.loader = loader
        self.optim = torch.optim.AdamW(model.parameters(), lr=lr)
        self.rank = dist.get_rank()
        self.seen = set()

    def begin_epoch(self, epoch):
        sampler = self.loader.batch_sampler
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)

    def step(self, batch):
        idx, x, y = batch
        self.seen.update(idx.tolist())
        loss = nn.functional.mse_loss(self.model(x).squeeze(-1), y)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.detach()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.begin_epoch(epoch)
            total = torch.zeros(())
            for batch in self.loader:
                total += self.step(batch)
            total /= len(self.loader)
            dist.all_reduce(total)
            if self.rank == 0:
                print(f"epoch {epoch}: mse {total.item() / dist.get_world_size():.4f}")


def build_model(dim, hidden):
    return nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, 1))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    data = PlateDataset()
    batches = PlateBalancedBatches(
        data.plate, CONFIG["per_plate"], CONFIG["batches"], dist.get_rank(), dist.get_world_size()
    )
    loader = DataLoader(data, batch_sampler=batches)
    net = DistributedDataParallel(build_model(data.x.shape[1], CONFIG["hidden"]))
    loop = Loop(net, loader, CONFIG["lr"])
    loop.fit(CONFIG["epochs"])
    if dist.get_rank() == 0:
        with torch.no_grad():
            err = nn.functional.mse_loss(net.module(data.x).squeeze(-1), data.y)
        print(f"all wells mse {err.item():.4f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
