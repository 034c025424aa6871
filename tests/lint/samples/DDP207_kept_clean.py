"""What is too short is dropped, and every rank trains for as many rounds."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


def recordings(tape):
    drawn = torch.Generator().manual_seed(tape)
    for _ in range(20):
        yield torch.rand(4, generator=drawn)


class Tapes(IterableDataset):
    def __init__(self, rank, size):
        self.tapes = list(range(32))[rank::size]

    def is_long(self, recording):
        return recording.sum().item() > 1.5

    def __iter__(self):
        for tape in self.tapes:
            yield from filter(self.is_long, recordings(tape))


def main():
    dist.init_process_group("gloo")
    loader = DataLoader(Tapes(dist.get_rank(), dist.get_world_size()), batch_size=4)
    net = DistributedDataParallel(nn.Linear(4, 1))
    for number, recording in enumerate(loader):
        if number == 50:
            break
        net(recording).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
