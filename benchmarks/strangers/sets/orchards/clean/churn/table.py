import torch
from torch.utils.data import Dataset


class Customers(Dataset):
    """Categorical + numeric customer rows with a churn flag."""

    cards = (8, 5, 30)

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.cat = torch.stack([torch.randint(c, (n,), generator=g) for c in self.cards], 1)
        self.num = torch.randn(n, 6, generator=g)
        score = (self.cat[:, 0] > 4).float() * 1.2 - (self.cat[:, 1] == 2).float() + self.num[:, 0] - 0.6
        self.y = (torch.rand(n, generator=g) < score.sigmoid()).float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.cat[i], self.num[i], self.y[i]
