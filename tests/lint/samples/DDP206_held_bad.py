import random

import torch.distributed as dist
from torch.utils.data import DistributedSampler, random_split


class Samples:
    def __init__(self, names):
        self.names = list(names)
        random.shuffle(self.names)  # <-- DDP206

    def __len__(self):
        return len(self.names)


def split(data):
    return random_split(data, [90, 10])  # <-- DDP206


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train, _ = split(range(100))
    sampler = DistributedSampler(Samples("abc"))
