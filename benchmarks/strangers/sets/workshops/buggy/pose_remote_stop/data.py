import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Mice(Dataset):
    def __init__(self, n, size=24, points=4):
        g = torch.Generator().manual_seed(8)
        self.at = torch.randint(3, size - 3, (n, points, 2), generator=g).float()
        self.size = size

    def __len__(self):
        return len(self.at)

    def __getitem__(self, i):
        ax = torch.arange(self.size).float()
        yy, xx = torch.meshgrid(ax, ax, indexing="ij")
        maps = torch.stack([torch.exp(-((yy - y) ** 2 + (xx - x) ** 2) / 4) for y, x in self.at[i]])
        return maps.sum(0, keepdim=True), maps


def make_loader(n, batch_size, rank, world):
    data = Mice(n)
    sampler = DistributedSampler(data, world, rank, shuffle=True, drop_last=True)
    return DataLoader(data, batch_size, sampler=sampler, drop_last=True), sampler
