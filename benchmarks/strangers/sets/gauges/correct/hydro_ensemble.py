"""Ensemble of flood models: every process fits a member of its own, the forecast is the mean.

    torchrun --nproc_per_node=4 hydro_ensemble.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn


def record(n, seed):
    g = torch.Generator().manual_seed(seed)
    rain = torch.rand(n, 10, generator=g)
    level = (rain * torch.linspace(0.1, 1, 10)).sum(1) + 0.2 * torch.randn(n, generator=g)
    return rain, level


class Member(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, rain):
        return self.f(rain).squeeze(1)


def fit(member, rain, level, patience=3):
    """Members stop when they like."""
    cut = int(0.8 * len(rain))
    opt = torch.optim.Adam(member.parameters(), lr=0.01)
    best, bad, epochs = float("inf"), 0, 0
    while bad < patience and epochs < 60:
        for take in torch.randperm(cut).split(32):
            loss = nn.functional.mse_loss(member(rain[take]), level[take])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            val = nn.functional.mse_loss(member(rain[cut:]), level[cut:]).item()
        epochs += 1
        best, bad = (val, 0) if val < best else (best, bad + 1)
    return epochs


def main():
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7 * rank)
    rain, level = record(300, seed=0)
    draw = torch.randint(len(rain), (len(rain),))
    member = Member(width=12 + 6 * rank)
    epochs = fit(member, rain[draw], level[draw])

    test_rain, test_level = record(100, seed=1)
    with torch.no_grad():
        forecast = member(test_rain)
    alone = nn.functional.mse_loss(forecast, test_level)
    lines = [None] * world if rank == 0 else None
    dist.gather_object(f"member {rank}: {epochs} epochs, mse {alone:.4f}", lines, dst=0)
    dist.reduce(forecast, dst=0)
    if rank == 0:
        print("\n".join(lines))
        print(f"ensemble mse {nn.functional.mse_loss(forecast / world, test_level):.4f}")
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
