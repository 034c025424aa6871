import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class ScenesDataset(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(6)
        self.x = torch.randn(n, 4, generator=g)
        self.y = (self.x[:, 0] + 0.8 * torch.randn(n, generator=g) > 0).float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return i, self.x[i], self.y[i]


def build_val_loader(ds, batch_size):
    return DataLoader(ds, batch_size=batch_size, sampler=DistributedSampler(ds, shuffle=False))
