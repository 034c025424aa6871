"""Each rank takes its slice of every bucket, and gives batches of that."""

import random
from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

LENGTHS = [8, 12, 16]


class Sentences(Dataset):
    def __init__(self, number=96):
        self.lengths = [LENGTHS[each % 3] for each in range(number)]
        self.tokens = [torch.randn(length) for length in self.lengths]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index]


class Buckets:
    def __init__(self, lengths, batch, rank, world):
        self.batch, self.rank, self.world = batch, rank, world
        self.epoch = 0
        self.members = defaultdict(list)
        for number, length in enumerate(lengths):
            self.members[length].append(number)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def mine(self, members):
        members = list(members)
        random.Random(f"{self.epoch}-{len(members)}").shuffle(members)
        usable = len(members) - len(members) % (self.batch * self.world)
        each = usable // self.world
        return members[self.rank * each : (self.rank + 1) * each]

    def __iter__(self):
        for length in sorted(self.members):
            mine = self.mine(self.members[length])
            for first in range(0, len(mine), self.batch):
                yield mine[first : first + self.batch]

    def __len__(self):
        return sum(len(each) // (self.batch * self.world) for each in self.members.values())


def main():
    dist.init_process_group("gloo")
    data = Sentences()
    sampler = Buckets(data.lengths, 4, dist.get_rank(), dist.get_world_size())
    model = DistributedDataParallel(nn.Conv1d(1, 1, 3))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(data, batch_sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = model(batch.unsqueeze(1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
