import os
from pathlib import Path

import torch
from torch.utils.data import Dataset, DistributedSampler


class Scans(Dataset):
    def __init__(self, root, wanted):
        self.root = Path(root)
        there = set(os.listdir(root))
        self.names = [name for name in wanted if name in there]
        found = []
        for folder in self.root.iterdir():
            found += [path for path in folder.rglob("*.pt")]
        self.scans = sorted((path, path.parent.name) for path in found)

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        views = list((self.root / self.names[index]).glob("*.pt"))
        path, label = self.scans[index]
        return torch.load(path, map_location="cpu"), label, len(views)


def sampler(root, wanted):
    return DistributedSampler(Scans(root, wanted), shuffle=False)
