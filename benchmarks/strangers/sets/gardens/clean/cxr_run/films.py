import torch
from torch.utils.data import TensorDataset


def make_films(cfg, n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, cfg.classes, (n,), generator=g)
    x = torch.randn(n, 1, cfg.size, cfg.size, generator=g)
    for k in range(n):
        c = int(y[k])
        x[k, 0, c * 3:c * 3 + 2, :] += 1.2
    return TensorDataset(x, y)
