"""Denoising in 2-D. All processes draw the noise of the whole batch from the same generator and take their rows of it."""
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Conf(NamedTuple):
    seed: int = 7
    batch: int = 64
    levels: int = 30
    steps: int = 100


class GlobalNoise:
    def __init__(self, conf, rank, world):
        self.gen = torch.Generator().manual_seed(conf.seed)
        self.total = conf.batch * world
        self.rows = slice(rank * conf.batch, (rank + 1) * conf.batch)
        self.levels = conf.levels

    def draw(self):
        t = torch.randint(0, self.levels, (self.total,), generator=self.gen)
        eps = torch.randn(self.total, 2, generator=self.gen)
        return t[self.rows], eps[self.rows]


def main(conf=Conf()):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(conf.seed)
    net = DDP(nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2)))
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    noise = GlobalNoise(conf, rank, world)
    points = torch.Generator().manual_seed(500 + rank)
    for step in range(1, conf.steps + 1):
        phi = 6.2832 * torch.rand(conf.batch, generator=points)
        x0 = torch.stack([phi.cos(), phi.sin()], 1)
        t, eps = noise.draw()
        s = (t.float() + 1).unsqueeze(1) / conf.levels
        loss = (net(torch.cat([(1 - s).sqrt() * x0 + s.sqrt() * eps, s], 1)) - eps).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 25 == 0:
            print(f"rank {rank} step {step} loss {loss.item():.4f} mean t {t.float().mean().item():.2f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
