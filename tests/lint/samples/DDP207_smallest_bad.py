import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Windows(IterableDataset):
    """Windows of this rank's recordings, as many on every rank."""

    def __init__(self, recordings, width):
        self.recordings = recordings[dist.get_rank() :: dist.get_world_size()]
        self.width = width
        self.count = self.shortest()

    def cut(self):
        for recording in self.recordings:
            for start in range(0, len(recording) - self.width, self.width):
                yield recording[start : start + self.width]

    def shortest(self):
        held = torch.tensor(sum(1 for _ in self.cut()))
        return int(held)

    def __iter__(self):
        return itertools.islice(self.cut(), self.count)


def main(recordings):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(16, 16))
    optimizer = torch.optim.Adam(model.parameters())
    for window in DataLoader(Windows(recordings, 16), batch_size=4):  # <-- DDP207
        optimizer.zero_grad()
        (model(window) - window).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main([torch.linspace(0, 1, 50 + 7 * number) for number in range(12)])
