import math

import torch as th
import torch.nn as nn


class EpsNet(nn.Module):
    """No image here, the data are points in the plane."""

    def __init__(self, channels=64):
        super().__init__()
        self.register_buffer("freqs", th.exp(th.linspace(0, math.log(50.0), 8)))
        self.inp = nn.Linear(2 + 16, channels)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(channels, channels), nn.SiLU())
        self.out = nn.Linear(channels, 2)

    def forward(self, x, t):
        ang = t[:, None] * self.freqs
        h = self.inp(th.cat([x, ang.sin(), ang.cos()], dim=1))
        return self.out(h + self.mid(h))
