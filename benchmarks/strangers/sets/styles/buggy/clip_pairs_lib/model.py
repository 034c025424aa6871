import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def tower(inp, width, out):
    return nn.Sequential(nn.Linear(inp, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, out))


class TwoTower(nn.Module):
    def __init__(self, image=32, text=20, width=64, out=16):
        super().__init__()
        self.visual, self.textual = tower(image, width, out), tower(text, width, out)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text):
        a = F.normalize(self.visual(image), dim=-1)
        b = F.normalize(self.textual(text), dim=-1)
        return a, b, self.logit_scale.exp()
