"""Data set construction for blade vibration records."""
import torch
from torch.utils.data import Dataset, Subset


class BladeRecords(Dataset):
    def __init__(self, n=600, channels=24, train_noise=0.05):
        g = torch.Generator().manual_seed(2024)
        self.signal = torch.randn(n, channels, generator=g)
        mix = torch.randn(channels, generator=g) / channels ** 0.5
        self.wear = (self.signal @ mix).sin() + 0.3 * torch.randn(n, generator=g)
        self.noise = train_noise

    def __len__(self):
        return len(self.wear)

    def __getitem__(self, i):
        x = self.signal[i] + self.noise * torch.randn(self.signal.shape[1])
        return x, self.wear[i], i


def split_records(ds, val_fraction):
    n_val = int(len(ds) * val_fraction)
    order = torch.randperm(len(ds), generator=torch.Generator().manual_seed(99)).tolist()
    return Subset(ds, order[n_val:]), Subset(ds, order[:n_val])


def make_datasets(cfg):
    ds = BladeRecords(train_noise=cfg.noise)
    return split_records(ds, cfg.val_fraction)
