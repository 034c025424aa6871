"""Ocean emulator: training with averaged weights, continued from a checkpoint."""
import copy
import os
import shutil
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class RunConfig:
    ckpt: str
    start: int
    stop: int
    resume: bool
    lr: float = 5e-3
    decay: float = 0.98


class EMATracker:
    def __init__(self, model, decay):
        self.decay, self.updates = decay, 0
        self.shadow = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for avg, p in zip(self.shadow.parameters(), model.parameters()):
            avg.mul_(d).add_(p, alpha=1 - d)

    def state_dict(self):
        return {"updates": self.updates, "shadow": self.shadow.state_dict()}

    def load_state_dict(self, state):
        self.updates = state["updates"]
        self.shadow.load_state_dict(state["shadow"])


def emulator():
    return nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24))


def fields(rank, step, n=8):
    g = torch.Generator().manual_seed(10_000 * rank + step)
    x = torch.randn(n, 24, generator=g)
    return x, 0.9 * x.roll(1, 1) + 0.05 * torch.randn(n, 24, generator=g)


class Trainer:
    def __init__(self, cfg):
        self.cfg, self.rank = cfg, dist.get_rank()
        torch.manual_seed(44)
        self.model = DDP(emulator())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.ema = None
        self.step = cfg.start
        if cfg.resume:
            self.load_checkpoint()
        self.init_ema()

    def init_ema(self):
        self.ema = EMATracker(self.model.module, self.cfg.decay)

    def load_checkpoint(self):
        state = torch.load(self.cfg.ckpt, map_location="cpu", weights_only=True)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        self.init_ema()
        self.ema.load_state_dict(state["ema"])

    def save_checkpoint(self):
        if self.rank == 0:
            state = dict(model=self.model.module.state_dict(), optimizer=self.optimizer.state_dict(),
                         step=self.step, ema=self.ema.state_dict())
            torch.save(state, self.cfg.ckpt + ".new")
            os.replace(self.cfg.ckpt + ".new", self.cfg.ckpt)
        dist.barrier()

    def run(self):
        while self.step < self.cfg.stop:
            x, y = fields(self.rank, self.step)
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.ema.update(self.model.module)
            self.step += 1
        self.save_checkpoint()
        if self.rank == 0:
            x, y = fields(7, 0, 64)
            with torch.no_grad():
                score = nn.functional.mse_loss(self.ema.shadow(x), y).item()
            print(f"step {self.step}: averaged model mse {score:.4f}", flush=True)


def main():
    folder = [tempfile.mkdtemp(prefix="ocean_") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    ckpt = os.path.join(folder[0], "ckpt.pt")
    Trainer(RunConfig(ckpt, 0, 60, resume=False)).run()
    Trainer(RunConfig(ckpt, 60, 70, resume=True)).run()
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
