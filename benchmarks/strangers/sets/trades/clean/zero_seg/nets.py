import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.GroupNorm(4, o), nn.SiLU())


class TinyUNet(nn.Module):
    def __init__(self, width, n_classes):
        super().__init__()
        self.d1 = conv(1, width)
        self.d2 = conv(width, width * 2)
        self.mid = conv(width * 2, width * 2)
        self.u1 = conv(width * 3, width)
        self.out = nn.Conv2d(width, n_classes, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        b = self.mid(b)
        b = F.interpolate(b, scale_factor=2, mode="nearest")
        return self.out(self.u1(torch.cat([a, b], dim=1)))


class Blobs(Dataset):
    """Squares (class 1) and crosses (class 2) on noise."""

    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = 0.3 * torch.randn(n, 1, size, size, generator=g)
        self.y = torch.zeros(n, size, size, dtype=torch.long)
        for i in range(n):
            r, c = torch.randint(2, size - 6, (2,), generator=g).tolist()
            if i % 2:
                self.x[i, 0, r:r + 4, c:c + 4] += 1.5
                self.y[i, r:r + 4, c:c + 4] = 1
            else:
                self.x[i, 0, r + 2, c:c + 5] += 1.5
                self.y[i, r + 2, c:c + 5] = 2

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]
