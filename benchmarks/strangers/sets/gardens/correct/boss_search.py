import random

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def spirals(n, seed):
    g = torch.Generator().manual_seed(seed)
    t = torch.rand(n, generator=g) * 6
    y = torch.randint(0, 2, (n,), generator=g)
    ang = t + 3.1416 * y
    return torch.stack([t * ang.cos(), t * ang.sin()], 1) / 3 + 0.05 * torch.randn(n, 2, generator=g), y


def from_boss(value):
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def trial(width, lr, rank, world):
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)))
    opt = torch.optim.Adam(net.parameters(), lr=lr)
    x, y = spirals(400, 1)
    x, y = x[rank::world], y[rank::world]
    for _ in range(60):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    vx, vy = spirals(200, 2)
    vx, vy = vx[rank::world], vy[rank::world]
    with torch.no_grad():
        good = (net.module(vx).argmax(1) == vy).sum().float()
    dist.reduce(good, dst=0)
    return good.item() / 200 if rank == 0 else None


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    dice, top, tried = random.Random(13), (0.0, None), 0
    while True:
        if rank == 0:
            done = tried == 4 or top[0] > 0.97
            order = from_boss(None if done else (dice.choice([16, 32, 48]), dice.choice([3e-3, 1e-2, 3e-2])))
        else:
            order = from_boss(None)
        if order is None:
            break
        score = trial(*order, rank, world)
        tried += 1
        if rank == 0:
            top = max(top, (score, order))
            print(f"trial {tried} {order} acc {score:.3f}", flush=True)
    if rank == 0:
        print("best", top, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
