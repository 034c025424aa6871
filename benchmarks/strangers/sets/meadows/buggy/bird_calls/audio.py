import torch


def call_bank(count, samples=256, species=5, seed=0):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(samples).float()
    y = torch.randint(0, species, (count,), generator=g)
    chirp = torch.sin(t * (0.1 + 0.08 * y[:, None]) + 0.0004 * y[:, None] * t**2)
    return (chirp + 0.5 * torch.randn(count, samples, generator=g)).unsqueeze(1), y
