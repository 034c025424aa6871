import math

import torch
import torch.nn.functional as F
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, photo_dim=20, vocab=30, out=12):
        super().__init__()
        self.photo = nn.Sequential(nn.Linear(photo_dim, 48), nn.GELU(), nn.Linear(48, out))
        self.text = nn.Sequential(nn.Linear(vocab, 48), nn.GELU(), nn.Linear(48, out))
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, photo, bag):
        return (
            F.normalize(self.photo(photo), dim=-1),
            F.normalize(self.text(bag), dim=-1),
            self.log_scale.exp().clamp(max=100),
        )
