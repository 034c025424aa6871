import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class OptimConfig:
    base_lr: float = 0.02
    betas: tuple = (0.9, 0.98)


@dataclass
class TrainConfig:
    global_batch: int = 32
    steps: int = 25
    world_size: int = field(default_factory=lambda: dist.get_world_size() if "RANK" in os.environ else 1)
    optim: OptimConfig = field(default_factory=OptimConfig)

    @property
    def local_batch(self):
        return self.global_batch // self.world_size


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(5, 1))

    def forward(self, x):
        return (x @ self.w).tanh()


def main():
    dist.init_process_group("gloo")
    cfg = TrainConfig()
    model = DDP(Head())
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.optim.base_lr, betas=cfg.optim.betas)
    g = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(cfg.steps):
        x = torch.randn(cfg.local_batch, 5, generator=g)
        loss = (model(x) - x[:, :1].tanh()).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"rank {dist.get_rank()} batch {cfg.local_batch} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
