import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Sequential):
    def __init__(self, a, b, stride=1):
        super().__init__(nn.Conv2d(a, b, 3, stride=stride, padding=1), nn.GroupNorm(4, b), nn.SiLU())


class UNetDS(nn.Module):
    """Small U-net. In training it returns masks at full, half and quarter size."""

    def __init__(self, w=12):
        super().__init__()
        self.e1, self.e2, self.e3 = Conv(3, w), Conv(w, 2 * w, 2), Conv(2 * w, 4 * w, 2)
        self.d2, self.d1 = Conv(6 * w, 2 * w), Conv(3 * w, w)
        self.heads = nn.ModuleList([nn.Conv2d(w, 1, 1), nn.Conv2d(2 * w, 1, 1), nn.Conv2d(4 * w, 1, 1)])

    def forward(self, x):
        a = self.e1(x)
        b = self.e2(a)
        c = self.e3(b)
        d = self.d2(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1))
        e = self.d1(torch.cat([F.interpolate(d, scale_factor=2.0), a], 1))
        if not self.training:
            return self.heads[0](e)
        return [head(f) for head, f in zip(self.heads, (e, d, c))]
