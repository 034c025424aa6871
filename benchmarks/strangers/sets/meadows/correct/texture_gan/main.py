import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from loop import Adversaries
from nets import critic, painter


def textures(n, g):
    phase = torch.rand(n, 1, generator=g) * 6.28
    step = 0.3 + 0.5 * torch.rand(n, 1, generator=g)
    return torch.sin(phase + step * torch.arange(64).float())


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(200 + rank)
    g = torch.Generator().manual_seed(rank)
    pair = Adversaries(painter(), critic(), latent=8)
    for it in range(60):
        c = pair.critic_step(textures(32, g))
        p = pair.painter_step(32)
        if rank == 0 and it % 20 == 0:
            print(f"it {it} critic {c:.3f} painter {p:.3f}", flush=True)
    gap = pair.agreement()
    if rank == 0:
        print("weight gap", gap)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
