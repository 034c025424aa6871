import torch
from torch.utils.data import Dataset


class SignaturePairs(Dataset):
    """Pairs of 'signatures' (random walks drawn on a grid) of the same or of
    different writers. The writer fixes the drift of the walk."""

    def __init__(self, n_pairs, n_writers=6, size=24, seed=0):
        g = torch.Generator().manual_seed(seed)
        drift = torch.randn(n_writers, 2, generator=torch.Generator().manual_seed(8))
        self.pairs = []
        for i in range(n_pairs):
            same = i % 2
            a = torch.randint(0, n_writers, (1,), generator=g).item()
            b = a if same else (a + 1 + torch.randint(0, n_writers - 1, (1,), generator=g).item()) % n_writers
            self.pairs.append((self._draw(drift[a], size, g), self._draw(drift[b], size, g), float(same)))

    @staticmethod
    def _draw(drift, size, g):
        steps = torch.randn(60, 2, generator=g) * 0.6 + drift * 0.4
        pos = (steps.cumsum(0) + size / 2).remainder(size).long()
        img = torch.zeros(1, size, size)
        img[0, pos[:, 0], pos[:, 1]] = 1.0
        return img

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]
