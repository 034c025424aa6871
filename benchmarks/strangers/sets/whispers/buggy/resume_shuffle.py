"""Rollout training with restarts: the first call trains a few epochs, the second one goes on from the file."""
import os
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Fields(Dataset):
    """(day, state, next state) of a damped linear system"""

    def __init__(self, days=96):
        g = torch.Generator().manual_seed(0)
        step = torch.linalg.qr(torch.randn(16, 16, generator=g))[0] * 0.95
        self.state = torch.randn(days, 16, generator=g)
        self.next = self.state @ step

    def __len__(self):
        return len(self.state)

    def __getitem__(self, day):
        return day, self.state[day], self.next[day]


class DataModule:
    def __init__(self, cfg):
        self.dataset = Fields()
        self.sampler = DistributedSampler(self.dataset, shuffle=True, seed=cfg.seed)
        self.loader = DataLoader(self.dataset, cfg.batch_size, sampler=self.sampler)

    def epoch(self, number):
        self.sampler.set_epoch(number)
        return self.loader


def save(path, **state):
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()


def train(cfg, until):
    torch.manual_seed(cfg.seed)
    dm = DataModule(cfg)
    model = DDP(nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16)))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    done = 0
    if os.path.exists(cfg.checkpoint):
        state = torch.load(cfg.checkpoint, map_location="cpu")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epochs_done"]
    for epoch in range(until - done):
        days = []
        for day, x, y in dm.epoch(epoch):
            days += day.tolist()
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {done + epoch + 1}/{cfg.epochs} loss {loss.item():.4f} first days {days[:5]}", flush=True)
        save(cfg.checkpoint, model=model.module.state_dict(), optimizer=optimizer.state_dict(),
             epochs_done=done + epoch + 1)


def main():
    cfg = SimpleNamespace(seed=42, batch_size=8, lr=2e-3, epochs=6, checkpoint="last.ckpt")
    dist.init_process_group("gloo")
    if not os.path.exists(cfg.checkpoint):
        dist.barrier()
        train(cfg, until=3)      # walltime of the first job
    train(cfg, until=cfg.epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
