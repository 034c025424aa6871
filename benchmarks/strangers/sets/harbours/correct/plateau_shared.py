"""ReduceLROnPlateau and early stop on a validation loss that is summed over the ranks, each rank scores its own part."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def tides(rank, n, seed):
    g = torch.Generator().manual_seed(10 * seed + rank)
    x = torch.randn(n, 5, generator=g)
    return x, (x[:, 0] * x[:, 1]).unsqueeze(1) + 0.1 * torch.randn(n, 1, generator=g)


@torch.no_grad()
def validation_loss(model, x, y):
    model.eval()
    sums = torch.tensor([nn.functional.mse_loss(model.module(x), y, reduction="sum"), len(x)])
    model.train()
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


def main():
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1)))
    opt = torch.optim.Adam(model.parameters(), lr=0.03)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.3, patience=0)
    x, y = tides(rank, 160, 1)
    vx, vy = tides(rank, 40 + 13 * rank, 2)
    best, bad = float("inf"), 0
    for epoch in range(12):
        for xb, yb in zip(x.split(20), y.split(20)):
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        val = validation_loss(model, vx, vy)
        sched.step(val)
        best, bad = (val, 0) if val < best else (best, bad + 1)
        if rank == 0:
            print(f"epoch {epoch} val {val:.4f} lr {opt.param_groups[0]['lr']:.4f}", flush=True)
        if bad >= 3:
            break


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
