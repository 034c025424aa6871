import torch
from torch.utils.data import Dataset


class SolarPanels(Dataset):
    """One bright box per tile; the target is (cx, cy, w, h) in [0, 1]."""

    def __init__(self, n, size=20, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.tiles, self.boxes = [], []
        for _ in range(n):
            t = 0.2 * torch.rand(1, size, size, generator=g)
            w, h = torch.randint(4, 9, (2,), generator=g).tolist()
            x = torch.randint(0, size - w, (1,), generator=g).item()
            y = torch.randint(0, size - h, (1,), generator=g).item()
            t[0, y:y + h, x:x + w] += 0.7
            self.tiles.append(t)
            self.boxes.append(torch.tensor([x + w / 2, y + h / 2, w, h]) / size)

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        return self.tiles[i], self.boxes[i]
