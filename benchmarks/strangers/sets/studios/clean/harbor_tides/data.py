import math

import torch


def make_series(n_points=1200, seed=11):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(n_points, dtype=torch.float32)
    level = torch.sin(2 * math.pi * t / 12.4) + 0.4 * torch.sin(2 * math.pi * t / 24.8 + 0.7)
    return level + 0.05 * torch.randn(n_points, generator=g)


def windows(series, length, horizon):
    xs, ys = [], []
    for i in range(len(series) - length - horizon):
        xs.append(series[i:i + length])
        ys.append(series[i + length:i + length + horizon])
    return torch.stack(xs), torch.stack(ys)


def split_for(rank, world, x, y, val_part=0.2):
    cut = int(len(x) * (1 - val_part))
    cut -= cut % world
    train = (x[:cut][rank::world], y[:cut][rank::world])
    val_idx = torch.arange(cut, len(x))[rank::world]
    return train, (x[val_idx], y[val_idx], val_idx)
