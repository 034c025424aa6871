"""Toy GAN; the score gathers features of as many samples from every process, whatever the size of the real set."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

Z, EVAL = 4, 101


def net(a, b):
    return nn.Sequential(nn.Linear(a, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, b))


def moons(n, g):
    t = 3.14 * torch.rand(n, generator=g)
    side = torch.randint(0, 2, (n,), generator=g) * 2.0 - 1
    return torch.stack([t.cos() + 0.5 * side, side * t.sin()], 1) + 0.05 * torch.randn(n, 2, generator=g)


def shard(rows, rank, world):
    per = len(rows) // world
    return rows[rank * per:(rank + 1) * per]


@torch.no_grad()
def score(G, real, rank, world):
    mine = shard(real, rank, world)
    fake = G.module(torch.randn(len(mine), Z))
    stats = []
    for t in (mine, fake):
        rows = [torch.empty_like(t) for _ in range(world)]
        dist.all_gather(rows, t.contiguous())
        every = torch.cat(rows)
        stats.append((every.mean(0), every.std(0)))
    return sum((a - b).square().sum() for a, b in zip(*stats)).item()


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    g = torch.Generator().manual_seed(10 + rank)
    G, D = DDP(net(Z, 2)), DDP(net(2, 1))
    og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
    real_eval = moons(EVAL, torch.Generator().manual_seed(0))
    for step in range(1, 61):
        fake = G(torch.randn(32, Z))
        both = D(torch.cat([moons(32, g), fake.detach()]))
        ld = F.softplus(-both[:32]).mean() + F.softplus(both[32:]).mean()
        od.zero_grad()
        ld.backward()
        od.step()
        lg = F.softplus(-D.module(fake)).mean()
        og.zero_grad()
        lg.backward()
        og.step()
        if step % 20 == 0:
            s = score(G, real_eval, rank, world)
            if rank == 0:
                print(f"step {step} score {s:.3f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
