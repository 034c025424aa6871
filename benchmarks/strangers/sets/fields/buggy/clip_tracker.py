"""Short-clip object tracker: a Trainer with norm recalibration of the best snapshot at the end of the run."""
import copy
import dataclasses

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


@dataclasses.dataclass
class TrackerConfig:
    epochs: int = 3
    frames: int = 8
    clips: int = 64
    batch: int = 8
    lr: float = 0.02
    recalibrate: int = 16


def make_clips(cfg, seed):
    g = torch.Generator().manual_seed(seed)
    start = torch.rand(cfg.clips, 1, 2, generator=g)
    speed = 0.1 * torch.randn(cfg.clips, 1, 2, generator=g)
    path = start + speed * torch.arange(cfg.frames + 1).view(1, -1, 1)
    return path[:, :-1].flatten(1), path[:, -1]


def build(cfg):
    return nn.Sequential(nn.Linear(2 * cfg.frames, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank = dist.get_rank()
        self.is_main = self.rank == 0
        self.train_data = make_clips(cfg, 100 + self.rank)
        self.val_data = make_clips(cfg, 9)
        torch.manual_seed(0)
        self.net = DistributedDataParallel(build(cfg))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=cfg.lr)
        self.best_loss, self.best_epoch, self.best_state = float("inf"), 0, None
        self.epoch = 0

    def train_epoch(self):
        x, y = self.train_data
        for i in range(0, len(x), self.cfg.batch):
            loss = F.mse_loss(self.net(x[i:i + self.cfg.batch]), y[i:i + self.cfg.batch])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    def validate(self):
        bare = copy.deepcopy(self.net.module).eval()
        x, y = self.val_data
        with torch.no_grad():
            value = F.mse_loss(bare(x), y).item()
        if value < self.best_loss:
            self.best_loss, self.best_epoch = value, self.epoch + 1
            self.best_state = bare.state_dict()
        print(f"epoch {self.epoch} val {value:.4f}", flush=True)

    def refresh_best(self):
        if self.cfg.recalibrate <= 0 or self.best_epoch == self.epoch + 1:
            return False
        dist.barrier()
        if self.is_main and self.best_state is not None:
            bare = build(self.cfg)
            bare.load_state_dict(self.best_state)
            bare.train()
            with torch.no_grad():
                for i in range(0, self.cfg.recalibrate, 8):
                    bare(self.val_data[0][i:i + 8])
            self.best_state = bare.state_dict()
        return True

    def fit(self):
        for self.epoch in range(self.cfg.epochs):
            last = self.train_epoch()
            if self.is_main:
                self.validate()
        self.refresh_best()
        total = torch.tensor([last])
        dist.all_reduce(total)
        if self.is_main:
            print(f"mean last loss {total.item() / dist.get_world_size():.4f}, best epoch {self.best_epoch}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(TrackerConfig()).fit()
    dist.destroy_process_group()
