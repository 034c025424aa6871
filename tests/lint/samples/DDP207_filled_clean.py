"""Batches are filled up to a number of frames: those that are left over are left out."""

import random

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader


class FullBatches:
    def __init__(self, lengths, most, rank, world):
        self.lengths, self.most = lengths, most
        self.rank, self.world, self.epoch = rank, world, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def filled(self):
        batches, batch = [], []
        for number, length in enumerate(self.lengths):
            if batch and length * (len(batch) + 1) > self.most:
                batches.append(batch)
                batch = []
            batch.append(number)
        random.Random(self.epoch).shuffle(batches)
        return batches

    def __iter__(self):
        batches = self.filled()
        batches = batches[: len(batches) - len(batches) % self.world]
        return iter(batches[self.rank :: self.world])

    def __len__(self):
        return len(self.filled()) // self.world


def main():
    dist.init_process_group("gloo")
    clips = torch.load("clips.pt")
    lengths = [len(clip) for clip in clips]
    batches = FullBatches(lengths, 4000, dist.get_rank(), dist.get_world_size())
    net = nn.parallel.DistributedDataParallel(nn.Linear(40, 12))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        batches.set_epoch(epoch)
        for clip in DataLoader(clips, batch_sampler=batches):
            optimizer.zero_grad()
            net(clip).logsumexp(-1).mean().backward()
            optimizer.step()
    dist.destroy_process_group()


main()
