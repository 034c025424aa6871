import numpy as np
import torch.distributed as dist
from torch.utils.data import Dataset


class Noisy(Dataset):
    def __init__(self, x):
        self.x = x
        self.rng = np.random.default_rng(0)  # <-- DDP210

    def __getitem__(self, i):
        return self.x[i] + self.rng.normal()


class Noisier(Noisy):
    def __init__(self, x, seed):
        self.dice = np.random.RandomState(seed)  # <-- DDP210

    def __getitem__(self, i):
        return self.dice.rand()


def start():
    dist.init_process_group("gloo")
