"""Nowcasting: next radar frame from the last three, one-cycle learning rate."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class RadarLoops(Dataset):
    def __init__(self, n=330, size=10):
        g = torch.Generator().manual_seed(14)
        yy, xx = torch.meshgrid(torch.arange(float(size)), torch.arange(float(size)), indexing="ij")
        start = torch.rand(n, 2, generator=g) * size
        speed = torch.rand(n, 2, generator=g) * 2 - 1
        frames = []
        for k in range(4):
            c = start + k * speed
            frames.append(torch.exp(-((yy - c[:, :1, None]) ** 2 + (xx - c[:, 1:, None]) ** 2) / 4))
        self.frames = torch.stack(frames, 1)

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.frames[i, :3], self.frames[i, 3:]


def get_parser():
    p = argparse.ArgumentParser()
    p.add_argument("--epoch", type=int, default=3)
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--lr", type=float, default=5e-3)
    p.add_argument("--sched", choices=["onecycle", "cosine", "none"], default="onecycle")
    return p


def get_optim_scheduler(args, loader, model):
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    steps = len(loader) * args.epoch
    if args.sched == "onecycle":
        return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=args.lr, total_steps=steps)
    if args.sched == "cosine":
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    return optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)


class Experiment:
    def __init__(self, args):
        self.args = args
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.dataset = RadarLoops()
        self.sampler = DistributedSampler(self.dataset, self.world, self.rank)
        self.loader = DataLoader(self.dataset, batch_size=args.batch_size, sampler=self.sampler)
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                            nn.Conv2d(16, 1, 3, padding=1))
        self.model = DDP(net)
        self.optimizer, self.scheduler = get_optim_scheduler(args, self.loader, net)

    def train(self):
        for epoch in range(self.args.epoch):
            self.sampler.set_epoch(epoch)
            for past, future in self.loader:
                loss = nn.functional.mse_loss(self.model(past), future)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
            if self.rank == 0:
                print(f"Epoch: {epoch + 1} Lr: {self.scheduler.get_last_lr()[0]:.6f} | Train Loss: {loss.item():.5f}", flush=True)


def main():
    args = get_parser().parse_args()
    dist.init_process_group("gloo")
    Experiment(args).train()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
