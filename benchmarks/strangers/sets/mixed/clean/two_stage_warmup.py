"""Fine-tuning that may be interrupted: state is written every epoch and picked up by the next launch.

Here both launches happen in one process: run(until=2) stands for the one that was cut off.
"""
import dataclasses
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclasses.dataclass
class TaskConfig:
    out: str
    epochs: int = 5
    warmup_steps: int = 6
    total_steps: int = 60
    lr: float = 0.02
    batch: int = 4
    seed: int = 30


@dataclasses.dataclass
class TrainState:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    epoch: int = 0

    def path(self, cfg):
        return os.path.join(cfg.out, "last.ckpt")

    def save(self, cfg):
        if dist.get_rank() == 0:
            payload = {
                "model": self.model.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "epoch": self.epoch,
            }
            torch.save(payload, self.path(cfg) + ".tmp")
            os.replace(self.path(cfg) + ".tmp", self.path(cfg))
        dist.barrier()

    def resume(self, cfg):
        found = [os.path.exists(self.path(cfg))]
        dist.broadcast_object_list(found, src=0)
        if found[0]:
            payload = torch.load(self.path(cfg), map_location="cpu")
            self.model.module.load_state_dict(payload["model"])
            self.optimizer.load_state_dict(payload["optimizer"])
            self.scheduler.load_state_dict(payload["scheduler"])
            self.epoch = payload["epoch"]


def poly_with_warmup(cfg):
    def factor(step):
        if step < cfg.warmup_steps:
            return (step + 1) / cfg.warmup_steps
        return max(0.0, 1 - (step - cfg.warmup_steps) / (cfg.total_steps - cfg.warmup_steps)) ** 0.9
    return factor


def run(cfg, until):
    g = torch.Generator().manual_seed(cfg.seed)
    x = torch.randn(96, 8, generator=g)
    data = TensorDataset(x, x.sum(1, keepdim=True).sin())
    sampler = DistributedSampler(data, seed=cfg.seed)
    loader = DataLoader(data, batch_size=cfg.batch, sampler=sampler)
    torch.manual_seed(cfg.seed)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, poly_with_warmup(cfg))
    state = TrainState(model, optimizer, scheduler)
    state.resume(cfg)
    while state.epoch < until:
        sampler.set_epoch(state.epoch)
        for inp, target in loader:
            loss = nn.functional.mse_loss(model(inp), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        state.epoch += 1
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"epoch {state.epoch} loss {mean.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}", flush=True)
        state.save(cfg)


def main():
    dist.init_process_group("gloo")
    folder = [tempfile.mkdtemp(prefix="warmup_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    cfg = TaskConfig(out=folder[0])
    run(cfg, until=2)
    run(cfg, until=cfg.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
