import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Sampler


class ByLength(Sampler):
    def __init__(self, lengths, size):
        self.lengths, self.size, self.epoch = list(lengths), size, 0
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        batches = [order[i : i + self.size] for i in range(0, len(order), self.size)]
        random.Random(self.epoch).shuffle(batches)
        usable = len(batches) // self.world * self.world
        yield from batches[self.rank : usable : self.world]

    def __len__(self):
        return len(self.lengths) // self.size // self.world


def main(rows):
    dist.init_process_group("gloo")
    sampler = ByLength([len(row) for row in rows], 8)
    loader = DataLoader(rows, batch_sampler=sampler)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main([torch.ones(4) for _ in range(96)])
