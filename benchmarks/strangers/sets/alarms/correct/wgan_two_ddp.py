"""Critic is updated several times per generator update; each network has its own wrapper."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def freeze(module, flag):
    for p in module.parameters():
        p.requires_grad_(not flag)


def sample(g, n=32):
    z = torch.randn(n, 2, generator=g)
    return torch.stack([z[:, 0], z[:, 0] ** 2 + 0.1 * z[:, 1]], 1)


def main(critic_steps=3, iters=8):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    gen = DDP(nn.Sequential(nn.Linear(4, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2)), broadcast_buffers=False)
    critic = DDP(nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1)))
    og = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.9))
    oc = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    g = torch.Generator().manual_seed(rank)
    for it in range(iters):
        freeze(critic, False)
        for _ in range(critic_steps + (it == 0) * 2):
            with torch.no_grad():
                fake = gen.module(torch.randn(32, 4, generator=g))
            real = sample(g)
            score = critic(torch.cat([real, fake]))
            lc = score[32:].mean() - score[:32].mean() + 1e-3 * score.pow(2).mean()
            oc.zero_grad()
            lc.backward()
            oc.step()
        freeze(critic, True)
        lg = -critic.module(gen(torch.randn(32, 4, generator=g))).mean()
        og.zero_grad()
        lg.backward()
        og.step()
    if rank == 0:
        print(f"critic {lc.item():.4f} generator {lg.item():.4f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
