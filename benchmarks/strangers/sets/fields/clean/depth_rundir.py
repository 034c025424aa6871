"""Monocular depth from synthetic ramps. Configuration in dataclasses, one folder per run."""
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass, field

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass
class OptimConfig:
    lr: float = 1e-2
    iters: int = 30


@dataclass
class RunConfig:
    name: str = "depth_ramps"
    base: str = tempfile.gettempdir()
    size: int = 16
    batch: int = 8
    optim: OptimConfig = field(default_factory=OptimConfig)


def setup_run(cfg: RunConfig) -> str:
    out_dir = os.path.join(cfg.base, f"{cfg.name}_{os.getppid()}")
    if dist.get_rank() == 0:
        os.makedirs(out_dir, exist_ok=False)
        with open(os.path.join(out_dir, "config.json"), "w") as f:
            json.dump(asdict(cfg), f, indent=1)
    return out_dir


def scene(cfg, g):
    slope = torch.rand(cfg.batch, 2, 1, 1, generator=g) - 0.5
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, cfg.size), torch.linspace(-1, 1, cfg.size), indexing="ij")
    depth = 2 + slope[:, :1] * yy + slope[:, 1:] * xx
    shade = 1 / depth + 0.02 * torch.randn(cfg.batch, 1, cfg.size, cfg.size, generator=g)
    return shade, depth


def build():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ELU(), nn.Conv2d(16, 1, 3, padding=1))


def train(cfg: RunConfig):
    out_dir = setup_run(cfg)
    torch.manual_seed(0)
    net = DistributedDataParallel(build())
    opt = torch.optim.Adam(net.parameters(), lr=cfg.optim.lr)
    g = torch.Generator().manual_seed(dist.get_rank())
    for it in range(cfg.optim.iters):
        shade, depth = scene(cfg, g)
        loss = (net(shade) - depth).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if dist.get_rank() == 0:
        torch.save(net.module.state_dict(), os.path.join(out_dir, "final.pt"))
        print(f"L1 {loss.item():.3f}, files {sorted(os.listdir(out_dir))}")
        shutil.rmtree(out_dir)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(RunConfig())
    dist.destroy_process_group()
