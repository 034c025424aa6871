import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, x):
        self.x = x
        self.order = np.random.default_rng(0).permutation(len(x))

    def __getitem__(self, i):
        return self.x[self.order[i]] + torch.randn(())


class Reseeded(Dataset):
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.other = np.random.default_rng()

    def __iter__(self):
        self.rng = np.random.default_rng(self.seed_of_the_worker())
        yield self.rng.normal() + self.other.normal()


def start(data):
    dist.init_process_group("gloo")
    return DataLoader(data)
