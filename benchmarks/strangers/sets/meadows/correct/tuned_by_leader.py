"""Learning rate and layout are chosen by process 0 and sent to the others."""
import argparse
import json

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def spectra(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    grid = torch.linspace(0, 1, 40)
    peak = torch.rand(n, 1, generator=g)
    curve = torch.exp(-((grid - peak) ** 2) / 0.01) + 0.05 * torch.randn(n, 40, generator=g)
    return curve, peak.squeeze(1)


def make(hidden):
    return nn.Sequential(nn.Linear(40, hidden), nn.Tanh(), nn.Linear(hidden, 1))


def quick_search(x, y):
    """Short single-process trials on a small part of the data."""
    results = []
    for lr in (1e-3, 1e-2, 5e-2):
        for hidden in (8, 32):
            torch.manual_seed(0)
            net = make(hidden)
            opt = torch.optim.Adam(net.parameters(), lr=lr)
            for _ in range(30):
                loss = nn.functional.mse_loss(net(x).squeeze(1), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
            results.append((loss.item(), lr, hidden))
    loss, lr, hidden = min(results)
    return {"lr": lr, "hidden": hidden, "trial_loss": loss}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--samples", type=int, default=256)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    x, y = spectra(args.samples)
    choice = [quick_search(x[:64], y[:64]) if rank == 0 else None]
    dist.broadcast_object_list(choice, src=0)
    choice = choice[0]
    model = DistributedDataParallel(make(choice["hidden"]))
    opt = torch.optim.Adam(model.parameters(), lr=choice["lr"])
    data = TensorDataset(x, y)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, 32, sampler=sampler)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        summed = torch.zeros(2)
        for bx, by in loader:
            loss = nn.functional.mse_loss(model(bx).squeeze(1), by)
            opt.zero_grad()
            loss.backward()
            opt.step()
            summed += torch.tensor([loss.item() * len(by), len(by)])
        dist.reduce(summed, dst=0)
        if rank == 0:
            print(f"epoch {epoch} mse {(summed[0] / summed[1]).item():.5f}", flush=True)
    if rank == 0:
        with open("choice.json", "w") as f:
            json.dump(choice, f)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
