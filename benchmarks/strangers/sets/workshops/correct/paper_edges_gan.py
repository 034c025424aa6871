"""GAN on edge maps. Only the critic of the current phase is synchronised; the last window of accumulation is short."""
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

ACCUM = 4


def window(model, last):
    return contextlib.nullcontext() if last else model.no_sync()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5 + rank)
    gen = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 36)))
    critic = DDP(nn.Sequential(nn.Linear(36, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)))
    og = torch.optim.Adam(gen.parameters(), lr=1e-3)
    oc = torch.optim.Adam(critic.parameters(), lr=1e-3)
    batches = list(torch.randn(22, 16, 36).abs())
    for epoch in range(2):
        for i, real in enumerate(batches):
            last = (i + 1) % ACCUM == 0 or i + 1 == len(batches)
            size = ACCUM if i < len(batches) // ACCUM * ACCUM else len(batches) % ACCUM
            z = torch.randn(len(real), 8)
            with torch.no_grad():
                fake = gen.module(z)
            with window(critic, last):
                score = critic(torch.cat([real, fake]))
                (F.relu(1 - score[:len(real)]).mean() + F.relu(1 + score[len(real):]).mean()).div(size).backward()
            if last:
                oc.step()
                oc.zero_grad()
            critic.requires_grad_(False)
            with window(gen, last):
                (-critic.module(gen(z)).mean() / size).backward()
            critic.requires_grad_(True)
            if last:
                og.step()
                og.zero_grad()
        flat = torch.cat([p.detach().flatten() for m in (gen, critic) for p in m.parameters()])
        other = flat.clone()
        dist.broadcast(other, src=0)
        assert torch.allclose(flat, other)
        if rank == 0:
            print("epoch", epoch, "norm", flat.norm().item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
