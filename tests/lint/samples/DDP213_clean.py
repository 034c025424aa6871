import glob
import os

from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Files(Dataset):
    def __init__(self, folder):
        self.files = sorted(os.listdir(folder))
        self.labels = glob.glob(folder + "/*.txt")
        self.labels.sort()
        self.count = len(os.listdir(folder))
        self.known = "index" in os.listdir(folder)


class Cache:
    def names(self, folder):
        return os.listdir(folder)


def load(folder):
    data = Files(folder)
    return DataLoader(data, sampler=DistributedSampler(data))
