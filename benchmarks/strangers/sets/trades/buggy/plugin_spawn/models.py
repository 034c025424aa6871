import torch
import torch.nn as nn

from registry import MODELS, register


@register(MODELS, "mlp")
class MLP(nn.Module):
    def __init__(self, n_in, n_out, hidden=24):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(n_in, hidden), nn.SiLU(), nn.Linear(hidden, n_out))

    def forward(self, x):
        return self.f(x)


@register(MODELS, "rff")
class RandomFeatures(nn.Module):
    """Fixed random Fourier features and a trained linear read-out."""

    def __init__(self, n_in, n_out, hidden=64):
        super().__init__()
        g = torch.Generator().manual_seed(0)
        self.register_buffer("w", torch.randn(n_in, hidden, generator=g))
        self.register_buffer("b", torch.rand(hidden, generator=g) * 6.2832)
        self.out = nn.Linear(hidden, n_out)

    def forward(self, x):
        return self.out(torch.cos(x @ self.w + self.b))
