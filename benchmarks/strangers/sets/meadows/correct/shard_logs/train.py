"""Sensor anomaly autoencoder with a step journal per process."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from journal import Journal


def sensors(n, seed):
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(3, 20, generator=g)
    return torch.randn(n, 3, generator=g) @ basis + 0.1 * torch.randn(n, 20, generator=g)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(20, 4)
        self.up = nn.Linear(4, 20)

    def forward(self, x):
        return self.up(torch.tanh(self.down(x)))


def save(model, opt, rank, folder):
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(folder, "model.pt"))
    rng = {"torch": torch.get_rng_state(), "rank": rank}
    torch.save(rng, os.path.join(folder, f"rng-{rank}.pt"))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    folder = "anomaly_run"
    journal = Journal(folder, rank)
    data = TensorDataset(sensors(256, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler)
    model = DDP(AutoEncoder())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    step = 0
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            noisy = x + 0.05 * torch.randn_like(x)
            loss = nn.functional.mse_loss(model(noisy), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            journal.write(step=step, loss=loss.item())
            step += 1
    save(model, opt, rank, folder)
    journal.close()
    dist.barrier()
    if rank == 0:
        rows = journal.merge()
        print(len(rows), "rows, last loss", round(rows[-1]["loss"], 4))


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
