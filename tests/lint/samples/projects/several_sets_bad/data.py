import glob

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Faces(Dataset):
    def __init__(self, pattern):
        self.images = glob.glob(pattern)  # <-- DDP213

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.as_tensor(Image.open(self.images[index]).getdata())


class Streets(Dataset):
    def __init__(self, pattern):
        self.images = glob.glob(pattern)  # <-- DDP213

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.as_tensor(Image.open(self.images[index]).getdata())


def loader(name, world, rank, **given):
    data = globals()[name](**given)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank)
    return DataLoader(data, batch_size=4, sampler=sampler), sampler
