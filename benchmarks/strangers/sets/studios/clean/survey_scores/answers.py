import torch

LEVELS = 5


def answers(n, seed, dims=20):
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(dims, generator=torch.Generator().manual_seed(0))
    x = torch.randn(n, dims, generator=g)
    site = (torch.arange(n) * 2 // n).float()
    raw = x @ w / w.norm() + 0.2 * torch.randn(n, generator=g) * (1 + 5 * site)
    score = torch.bucketize(raw, torch.tensor([-1.0, -0.3, 0.3, 1.0]))
    return x, score


def own_block(t, rank, world):
    return t.chunk(world)[rank]
