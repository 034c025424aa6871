import torch
from torch.utils.data import Dataset


class Farm(Dataset):
    """Hourly weather of a site and the power it gave."""

    def __init__(self, hours, seed):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(hours) / 24.0
        wind = (8 + 4 * torch.sin(t) + 2 * torch.randn(hours, generator=g)).clamp(0, 25)
        air = 1.2 + 0.05 * torch.randn(hours, generator=g)
        other = torch.randn(hours, 4, generator=g)
        self.x = torch.cat([(wind - 8)[:, None] / 4, (air - 1.2)[:, None] * 10, other], 1)
        self.y = (0.5 * air * (wind / 12).clamp(max=1.0) ** 3)[:, None] + 0.02 * torch.randn(hours, 1, generator=g)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]
