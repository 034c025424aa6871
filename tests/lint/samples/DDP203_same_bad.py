"""Kilns: a job is told with which firing it begins."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Firing:
    def __init__(self, logs, options):
        self.first, self.last = options.first, options.last
        self.order = DistributedSampler(logs)
        self.logs = DataLoader(logs, batch_size=options.rows, sampler=self.order)
        self.net = DistributedDataParallel(nn.Linear(12, 1))
        self.learner = torch.optim.Adam(self.net.parameters())

    def go_through(self, number):
        self.order.set_epoch(self.first)  # <-- DDP203
        for heat, crack in self.logs:
            self.learner.zero_grad()
            nn.functional.mse_loss(self.net(heat), crack).backward()
            self.learner.step()
        if dist.get_rank() == 0:
            print("fired", number)

    def go(self):
        for number in range(self.first, self.last):
            self.go_through(number)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=20)
    parser.add_argument("--rows", type=int, default=8)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    Firing(torch.load("logs.pt"), options).go()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
