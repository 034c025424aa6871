import glob
import os

from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Files(Dataset):
    def __init__(self, folder):
        self.files = os.listdir(folder)  # <-- DDP213
        self.labels = [name for name in glob.glob(folder + "/*.txt")]  # <-- DDP213


class Newest(Dataset):
    def __init__(self, folder):
        self.files = sorted(os.listdir(folder), key=os.path.getmtime)  # <-- DDP213


def load(folder):
    data = Files(folder)
    return DataLoader(data, sampler=DistributedSampler(data))
