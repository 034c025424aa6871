import torch
from torch import nn


class SharedNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(cfg.dim, cfg.width), nn.ReLU())
        self.heads = nn.ModuleDict({t: nn.Linear(cfg.width, 1) for t in cfg.tasks})

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([head(h) for head in self.heads.values()], dim=1)
