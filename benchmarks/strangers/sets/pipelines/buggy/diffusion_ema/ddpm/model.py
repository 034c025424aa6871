import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, d=6, h=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d + 1, h), nn.SiLU(), nn.Linear(h, d))

    def forward(self, x, t):
        return self.net(torch.cat([x, t[:, None]], 1))
