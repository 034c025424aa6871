import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from . import comm


def waves(n, grid, steps, seed):
    """Leapfrog solutions of the wave equation with a slower middle, after a random bump."""
    g = torch.Generator().manual_seed(seed)
    x = torch.arange(grid) / grid
    speed = (0.6 - 0.3 * torch.exp(-((x - 0.5) / 0.1) ** 2)) ** 2
    u = torch.exp(-((x - torch.rand(n, 1, generator=g)) / (0.04 + 0.06 * torch.rand(n, 1, generator=g))) ** 2)
    states = [u, u + 0.05 * torch.randn(n, 1, generator=g) * u]
    for _ in range(steps):
        lap = states[-1].roll(1, 1) + states[-1].roll(-1, 1) - 2 * states[-1]
        states.append(2 * states[-1] - states[-2] + speed * lap)
    return torch.stack(states[-4:], 1)


def get_dataloader(params, train):
    dataset = TensorDataset(waves(params["n_samples"] if train else 64, params["grid"], 12, seed=0 if train else 1))
    sampler = DistributedSampler(dataset, comm.get_size("data"), comm.get_rank("data"), shuffle=train)
    return DataLoader(dataset, params["batch_size"], sampler=sampler, drop_last=train), sampler
