import torch
from torch.utils.data import Dataset


class StripeLanes(Dataset):
    """Synthetic top-down road images: class 0 road, 1 lane mark, 2 kerb."""

    def __init__(self, n, size=32, seed=0):
        self.n, self.size, self.seed = n, size, seed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        s = self.size
        mask = torch.zeros(s, s, dtype=torch.long)
        x = int(torch.randint(4, s - 4, (1,), generator=g))
        mask[:, x:x + 2] = 1
        edge = int(torch.randint(1, 4, (1,), generator=g))
        mask[:, :edge] = 2
        img = torch.randn(1, s, s, generator=g) * 0.4 + mask.float().unsqueeze(0)
        return img, mask
