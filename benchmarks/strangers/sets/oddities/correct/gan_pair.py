"""GAN on 1-D mixtures, both nets wrapped; the discriminator is frozen while the generator learns."""
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.parallel import DistributedDataParallel as DDP


@contextlib.contextmanager
def frozen(net):
    for p in net.parameters():
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in net.parameters():
            p.requires_grad_(True)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 24), nn.LeakyReLU(0.2), nn.Linear(24, o))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    gen, disc = DDP(mlp(4, 1)), DDP(mlp(1, 1))
    go = torch.optim.Adam(gen.parameters(), lr=2e-3)
    do = torch.optim.Adam(disc.parameters(), lr=2e-3)
    g = torch.Generator().manual_seed(rank)
    for step in range(40):
        real = torch.randn(32, 1, generator=g) * 0.3 + (torch.rand(32, 1, generator=g) > 0.5) * 2 - 1
        z = torch.randn(32, 4, generator=g)
        fake = gen(z)
        both = disc(torch.cat([real, fake.detach()]))
        want = torch.cat([torch.ones(32, 1), torch.zeros(32, 1)])
        d_loss = bce(both, want)
        do.zero_grad()
        d_loss.backward()
        do.step()
        with frozen(disc):
            g_loss = bce(disc.module(fake), torch.ones(32, 1))
            go.zero_grad()
            g_loss.backward()
            go.step()
    if rank == 0:
        print(f"d {d_loss.item():.3f} g {g_loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
