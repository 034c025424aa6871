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


def start(data):
    dist.init_process_group("gloo")
    return DataLoader(data)
