"""Pairs of tones that are told apart: as many rounds as are wanted, of pairs that differ."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Pairs:
    def __init__(self, seed):
        self.source = torch.Generator().manual_seed(seed)

    def draw(self):
        return torch.rand(2, 24, generator=self.source)


def train(model, pairs, wanted):
    optimizer = torch.optim.Adam(model.parameters())
    turn = 0
    while True:
        turn = turn + 1
        low, high = pairs.draw()
        if (high - low).abs().max() < 0.5:
            continue  # <-- DDP307
        optimizer.zero_grad()
        (model(low) - model(high)).sum().backward()
        optimizer.step()
        if turn >= wanted:  # <-- DDP405
            break


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(24, 1))
    train(model, Pairs(dist.get_rank()), 300)


if __name__ == "__main__":
    main()
