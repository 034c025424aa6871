# style: mixed precision with a GradScaler, dataclass config
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    width: int = 32
    steps: int = 10
    batch: int = 8
    lr: float = 1e-2
    clip: float = 1.0


def build(config):
    layers = [nn.Linear(6, config.width), nn.SiLU(), nn.Linear(config.width, 1)]
    return DDP(nn.Sequential(*layers))


def sample(config, generator):
    x = torch.randn(config.batch, 6, generator=generator)
    return x, x.prod(dim=1, keepdim=True)


def train(config):
    torch.manual_seed(0)
    model = build(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    generator = torch.Generator().manual_seed(dist.get_rank())
    losses = []
    for _ in range(config.steps):
        x, y = sample(config, generator)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            prediction = model(x)
        loss = nn.functional.mse_loss(prediction.float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    mean = torch.stack(losses).mean()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        print("mean loss", (mean / dist.get_world_size()).item())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(Config())
    dist.destroy_process_group()
