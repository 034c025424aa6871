import torch
from torch.utils.data import Dataset


class Windows(Dataset):
    """`past` hours in, the next `ahead` hours out; `noise` sets how hard a level is."""

    def __init__(self, hours, noise, seed, past=48, ahead=6):
        g = torch.Generator().manual_seed(seed)
        t = torch.arange(hours).float()
        load = torch.sin(t * 0.2618) + 0.5 * torch.sin(t * 0.0374) + noise * torch.randn(hours, generator=g)
        self.load, self.past, self.ahead = load, past, ahead

    def __len__(self):
        return len(self.load) - self.past - self.ahead

    def __getitem__(self, i):
        return self.load[i:i + self.past], self.load[i + self.past:i + self.past + self.ahead]
