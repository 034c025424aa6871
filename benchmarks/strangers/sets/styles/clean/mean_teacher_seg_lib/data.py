import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Stripes(Dataset):
    def __init__(self, n, seed, labels=True, size=20):
        g = torch.Generator().manual_seed(seed)
        phase = 6.28 * torch.rand(n, 1, 1, generator=g)
        freq = 0.4 + 0.5 * torch.rand(n, 1, 1, generator=g)
        grid = torch.arange(size).float()
        wave = torch.sin(freq * (grid[None, :, None] + grid[None, None, :]) + phase)
        self.mask = (wave > 0).long()
        self.image = wave.unsqueeze(1) + 0.8 * torch.randn(n, 1, size, size, generator=g)
        self.labels = labels

    def __len__(self):
        return len(self.image)

    def __getitem__(self, i):
        return (self.image[i], self.mask[i]) if self.labels else self.image[i]


def loader_for(dataset, batch):
    sampler = DistributedSampler(dataset, shuffle=True)
    return DataLoader(dataset, batch, sampler=sampler, drop_last=True), sampler


def labelled_loader(batch):
    return loader_for(Stripes(64, seed=1), batch)


def unlabelled_loader(batch):
    return loader_for(Stripes(96, seed=2, labels=False), batch)
