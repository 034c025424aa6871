import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Packed(IterableDataset):
    def __init__(self, files, world_size=1, rank=0):
        self._files = files
        self._world_size = world_size
        self._rank = rank

    def __iter__(self):
        info = get_worker_info()  # <-- DDP215
        workers = info.num_workers if info is not None else 1
        number = info.id if info is not None else 0
        shard = self._rank * workers + number
        return iter(self._files[shard :: workers * self._world_size])


class Combined(IterableDataset):
    def __init__(self, parts, seed):
        self._parts = parts
        self._seed = seed

    def __iter__(self):
        return CombinedIterator(self._parts, self._seed)


class CombinedIterator:
    def __init__(self, parts, seed):
        self._parts = [iter(part) for part in parts]
        self._random = random.Random(seed)

    def __iter__(self):
        return self

    def __next__(self):
        (part,) = self._random.choices(self._parts, k=1)
        return next(part)


def main(sources, model):
    dist.init_process_group("nccl")
    parts = []
    for files in sources:
        part = Packed(files)
        parts.append(part)
    loader = DataLoader(Combined(parts, 1), batch_size=8)
    net = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        net(batch).mean().backward()
        optimizer.step()
