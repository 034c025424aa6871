"""GAN with both nets in DDP; the generator is called through .module where no gradient for it is wanted."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def real_batch(n, g):
    a = 6.28 * torch.rand(n, 1, generator=g)
    return torch.cat([a.cos(), a.sin()], 1)


def main(iters=40, n=32):
    rank = dist.get_rank()
    torch.manual_seed(0)
    G = DDP(nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)))
    D = DDP(nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)))
    g_opt = torch.optim.Adam(G.parameters(), lr=1e-3)
    d_opt = torch.optim.Adam(D.parameters(), lr=1e-3)
    rng = torch.Generator().manual_seed(rank)
    for it in range(iters):
        with torch.no_grad():
            fake = G.module(torch.randn(n, 4, generator=rng))
        scores = D(torch.cat([real_batch(n, rng), fake]))
        d_loss = F.softplus(-scores[:n]).mean() + F.softplus(scores[n:]).mean()
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()

        D.requires_grad_(False)
        g_loss = F.softplus(-D.module(G(torch.randn(n, 4, generator=rng)))).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        D.requires_grad_(True)
        if rank == 0 and it % 10 == 0:
            print(f"{it} d {d_loss.item():.3f} g {g_loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
