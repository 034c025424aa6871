"""1-d GAN with a lazy discriminator (skip its update while it wins)."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

bce = nn.functional.binary_cross_entropy_with_logits


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 24), nn.LeakyReLU(0.2), nn.Linear(24, o))


def world_mean(value):
    out = [torch.zeros_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(out, value)
    return sum(v.item() for v in out) / len(out)


class LazyGAN:
    def __init__(self, rank, args):
        self.args = args
        self.gen = torch.Generator().manual_seed(rank)
        self.G, self.D = DDP(mlp(4, 1)), DDP(mlp(1, 1))
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr=1e-2)
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr=1e-2)
        self.d_steps = 0

    def noise(self, *size):
        return torch.randn(*size, generator=self.gen)

    def d_step(self):
        real, fake = self.noise(8, 1) * 0.3 + 2, self.G.module(self.noise(8, 4)).detach()
        out = self.D(torch.cat([real, fake]))
        loss = bce(out, torch.cat([torch.ones(8, 1), torch.zeros(8, 1)]))
        if loss.item() < self.args.lazy_below:
            return loss
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        self.d_steps += 1
        return loss

    def g_step(self):
        self.D.requires_grad_(False)
        fake = self.G(self.noise(16, 4))
        self.spread = world_mean(fake.detach().std())
        loss = bce(self.D.module(fake), torch.ones(16, 1))
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.D.requires_grad_(True)
        return loss


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=60)
    p.add_argument("--lazy_below", type=float, default=0.6)
    args = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    gan = LazyGAN(dist.get_rank(), args)
    for it in range(args.iters):
        d, g = gan.d_step(), gan.g_step()
    dist.barrier()
    print(f"d {d.item():.3f} g {g.item():.3f} std {gan.spread:.3f} d_steps {gan.d_steps}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
