import random

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler, random_split


class Samples:
    def __init__(self, names, seed):
        self.names = list(names)
        random.Random(seed).shuffle(self.names)
        self.colours = ["red", "green"]
        random.shuffle(list(self.colours))

    def __len__(self):
        return len(self.names)


def split(data):
    return random_split(data, [90, 10], generator=torch.Generator().manual_seed(0))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train, _ = split(range(100))
    sampler = DistributedSampler(Samples("abc", 0))
    torch.manual_seed(0)
    again = random_split(range(100), [50, 50])
