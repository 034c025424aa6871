import numpy as np
import torch
from torch.utils.data import Dataset

CLASSES = ("water", "field", "forest", "urban")


class TileSet(Dataset):
    """Procedural aerial tiles: every class has its own mean colour."""

    palette = np.array(
        [[0.1, 0.2, 0.7], [0.6, 0.6, 0.2], [0.1, 0.5, 0.2], [0.5, 0.5, 0.5]],
        dtype=np.float32,
    )

    def __init__(self, count, size=24, base_seed=0):
        self.count = count
        self.size = size
        self.base_seed = base_seed

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        rng = np.random.default_rng(self.base_seed * 100_003 + i)
        mask = np.zeros((self.size, self.size), dtype=np.int64)
        for _ in range(4):
            r, c = rng.integers(0, self.size - 6, 2)
            h, w = rng.integers(4, 12, 2)
            mask[r : r + h, c : c + w] = rng.integers(0, len(CLASSES))
        img = self.palette[mask] + rng.normal(0, 0.15, mask.shape + (3,)).astype(np.float32)
        return torch.from_numpy(img).permute(2, 0, 1).float(), torch.from_numpy(mask)
