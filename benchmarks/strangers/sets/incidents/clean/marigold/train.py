import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

from run_setup import config_logging, setup_run


class DepthNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.SiLU(),
            nn.Conv2d(width, 1, 1))

    def forward(self, x):
        return self.net(x)


class DepthTrainer:
    def __init__(self, args, out_dir):
        self.args, self.out_dir = args, out_dir
        self.rank = dist.get_rank()
        torch.manual_seed(args.seed)
        self.model = DDP(DepthNet())
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr)
        self.gen = torch.Generator().manual_seed(args.seed + self.rank)

    def batch(self):
        rgb = torch.rand(4, 3, 12, 12, generator=self.gen)
        return rgb, rgb.mean(1, keepdim=True).cumsum(2) / 12

    def train(self):
        for it in range(1, self.args.max_iter + 1):
            rgb, depth = self.batch()
            loss = (self.model(rgb) - depth).abs().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if it % 10 == 0:
                logging.info("iter %d loss %.4f", it, loss.item())
        if self.rank == 0:
            torch.save(self.model.module.state_dict(), os.path.join(self.out_dir, "checkpoint", "latest.pth"))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--job_name", default="depth")
    ap.add_argument("--output_dir", default="output")
    ap.add_argument("--max_iter", type=int, default=20)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=2025)
    args = ap.parse_args()

    dist.init_process_group("gloo")
    out_dir = setup_run(args.output_dir, args.job_name)
    config_logging(out_dir, dist.get_rank())
    trainer = DepthTrainer(args, out_dir)
    trainer.train()
    dist.destroy_process_group()
