import torch
from torch.utils.data import Dataset, Sampler


class Scenes(Dataset):
    """A sky, a ground and a round thing in between, in noise."""

    def __init__(self, n, seed, size=20):
        self.n, self.seed, self.size = n, seed, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 8191 + i)
        yy, xx = torch.meshgrid(torch.arange(self.size), torch.arange(self.size), indexing="ij")
        horizon, cy, cx = (self.size * (0.3 + 0.4 * torch.rand(3, generator=g))).tolist()
        mask = (yy > horizon).long()
        mask[(yy - cy) ** 2 + (xx - cx) ** 2 < 12] = 2
        color = torch.tensor([[0.9, 0.2, 0.2], [0.2, 0.8, 0.3], [0.4, 0.5, 0.9]])
        return color[mask].permute(2, 0, 1) + 0.4 * torch.randn(3, self.size, self.size, generator=g), mask


class TrainingSampler(Sampler):
    """An endless stream of indices, of which a process takes every n-th."""

    def __init__(self, size, rank, world, seed):
        self.size, self.rank, self.world, self.seed = size, rank, world, seed

    def __iter__(self):
        g, k = torch.Generator().manual_seed(self.seed), 0
        while True:
            for i in torch.randperm(self.size, generator=g).tolist():
                if k % self.world == self.rank:
                    yield i
                k += 1
