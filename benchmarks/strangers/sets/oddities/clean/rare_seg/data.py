"""Synthetic tissue tiles: mostly background and stroma, now and then a rare gland."""
import torch
from torch.utils.data import Dataset


class TileSet(Dataset):
    def __init__(self, n=48, size=12, gland_every=5, seed=3):
        g = torch.Generator().manual_seed(seed)
        self.tiles = torch.randn(n, 3, size, size, generator=g)
        self.masks = (self.tiles.mean(1) > 0.2).long()
        for i in range(0, n, gland_every):
            r, c = (int(v) for v in torch.randint(0, size - 4, (2,), generator=g))
            self.masks[i, r:r + 4, c:c + 4] = 2
            self.tiles[i, :, r:r + 4, c:c + 4] += 2.0

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        return self.tiles[i], self.masks[i]
