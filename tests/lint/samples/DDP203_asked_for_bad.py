"""Whoever asks for it shuffles the samples, and nobody tells the sampler the epoch."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shuffle", action="store_true")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    data = torch.randn(100, 4)
    sampler = DistributedSampler(data, shuffle=options.shuffle)  # <-- DDP203
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        for rows in loader:
            optimizer.zero_grad()
            model(rows).sum().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
