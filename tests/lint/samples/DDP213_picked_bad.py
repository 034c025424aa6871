from pathlib import Path

import torch
from torch.utils.data import Dataset, DistributedSampler


class Scans(Dataset):
    def __init__(self, root):
        self.root = Path(root)
        self.scans = [(path, path.parent.name) for path in self.root.rglob("*.pt")]  # <-- DDP213

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, index):
        path, label = self.scans[index]
        return torch.load(path, map_location="cpu"), label


def sampler(root):
    return DistributedSampler(Scans(root), shuffle=False)
