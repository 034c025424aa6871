import torch
from torch.utils.data import Dataset

CLASSES = ("stroma", "gland", "necrosis", "fat")


class TileSet(Dataset):
    """Feature vectors of tissue tiles.  Class frequencies are far from uniform."""

    def __init__(self, n, seed, width=20):
        g = torch.Generator().manual_seed(seed)
        prior = torch.tensor([0.55, 0.27, 0.12, 0.06])
        self.label = torch.multinomial(prior, n, replacement=True, generator=g)
        centre = torch.randn(len(CLASSES), width, generator=torch.Generator().manual_seed(1))
        self.feature = 0.55 * centre[self.label] + torch.randn(n, width, generator=g)
        hard = torch.arange(n) >= n // 2
        self.feature[hard] += 0.8 * torch.randn(int(hard.sum()), width, generator=g)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.feature[i], self.label[i]
