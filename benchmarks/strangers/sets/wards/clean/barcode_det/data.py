import torch
from torch.utils.data import Dataset


class Shelf(Dataset):
    """Photos of shelves, a third of them without any code."""

    def __init__(self, n, size=48, seed=3):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        grid = size // 4
        for _ in range(n):
            image = 0.3 * torch.randn(1, size, size, generator=g)
            centre = torch.zeros(1, grid, grid)
            side = torch.zeros(2, grid, grid)
            kind = torch.zeros(grid, grid, dtype=torch.long)
            for _ in range(int(torch.randint(0, 3, (1,), generator=g))):
                y, x = torch.randint(2, grid - 2, (2,), generator=g).tolist()
                k = int(torch.randint(0, 4, (1,), generator=g))
                h, w = 2 + k, 3 + k
                image[0, 4 * y - h:4 * y + h, 4 * x - w:4 * x + w] += 1.0 + 0.3 * k
                centre[0, y, x] = 1
                side[:, y, x] = torch.tensor([h, w]) / 4.0
                kind[y, x] = k
            self.rows.append((image, {"centre": centre, "side": side, "kind": kind}))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]
