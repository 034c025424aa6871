import torch
from torch.utils.data import Dataset


class BoxToy(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        self.feat = torch.randn(n, 16, generator=g)
        self.box = torch.sigmoid(self.feat[:, :4] * 0.7)

    def __len__(self):
        return len(self.feat)

    def __getitem__(self, i):
        return self.feat[i], self.box[i]
