import torch


def make_clips(n, seed, noise, frames=20, mels=8):
    """Fake mel clips; a clip with a stutter repeats one of its frames. `noise` is per clip."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, frames, mels, generator=g)
    y = torch.randint(0, 2, (n,), generator=g)
    for i in range(n):
        if y[i]:
            x[i, 4:16] = x[i, 4] + 0.1 * torch.randn(12, mels, generator=g)
    scale = torch.linspace(0, noise, n).view(n, 1, 1)
    return x + scale * torch.randn(x.shape, generator=g), y


def part(t, rank, world):
    size = len(t) // world
    return t[rank * size:(rank + 1) * size]
