import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split
from torch.utils.data.distributed import DistributedSampler


def set_seed(seed, rank):
    seed = seed + rank * 12345
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Blobs(Dataset):
    def __init__(self, n=400, classes=20, dim=32, jitter=0.2):
        rng = np.random.RandomState(0)
        self.x = torch.from_numpy(rng.randn(n, dim)).float()
        self.y = torch.from_numpy(rng.randint(0, classes, n)).long()
        self.jitter = jitter

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i] + self.jitter * torch.randn(self.x.size(1)), self.y[i]


def make_loaders(batch_size, val_ratio):
    full = Blobs()
    n_val = int(len(full) * val_ratio)
    train_set, val_set = random_split(full, [len(full) - n_val, n_val],
                                      generator=torch.Generator().manual_seed(0))
    train_sampler = DistributedSampler(train_set, shuffle=True)
    val_sampler = DistributedSampler(val_set, shuffle=False)
    train_loader = DataLoader(train_set, batch_size=batch_size, sampler=train_sampler)
    val_loader = DataLoader(val_set, batch_size=batch_size, sampler=val_sampler)
    return train_loader, val_loader, train_sampler
