"""Glacier front lines. Validation runs on rank 0 only, through the bare module, others wait at the broadcast."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def scenes(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 1, 16, 16, generator=g)
    return x, x[:, 0, :, 8] * 0.5 + x[:, 0, :, 7] * 0.5


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    net = DDP(nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 256, 16)))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    x, y = scenes(128, 1)
    x, y = x[rank::world], y[rank::world]
    vx, vy = scenes(40, 2)
    best, bad = float("inf"), 0
    for epoch in range(12):
        for i in torch.randperm(len(x)).split(16):
            loss = nn.functional.mse_loss(net(x[i]), y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
        state = [None]
        if rank == 0:
            net.eval()
            with torch.no_grad():
                score = nn.functional.mse_loss(net.module(vx), vy).item()
            net.train()
            bad = 0 if score < best else bad + 1
            best = min(best, score)
            state = [(bad >= 2, score)]
        dist.broadcast_object_list(state, src=0)
        stop, score = state[0]
        if rank == 0:
            print(epoch, round(score, 4), flush=True)
        if stop:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
