from copy import deepcopy

import torch
import torch.nn as nn


class Conv(nn.Sequential):
    def __init__(self, c1, c2, s=1):
        super().__init__(nn.Conv2d(c1, c2, 3, s, 1, bias=False), nn.GroupNorm(4, c2), nn.SiLU())


class Model(nn.Sequential):
    def __init__(self, ch=16):
        super().__init__(Conv(1, ch), Conv(ch, 2 * ch, 2), Conv(2 * ch, 2 * ch, 2), nn.Conv2d(2 * ch, 5, 1))


class ModelEMA:
    def __init__(self, model, decay=0.95):
        self.ema = deepcopy(model.module if hasattr(model, "module") else model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        msd = (model.module if hasattr(model, "module") else model).state_dict()
        for k, v in self.ema.state_dict().items():
            v.mul_(self.decay).add_(msd[k].detach(), alpha=1 - self.decay)
