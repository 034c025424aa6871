import torch
import torch.nn as nn


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.enc = block(1, c)
        self.mid = block(c, 2 * c)
        self.dec = block(3 * c, c)
        self.head = nn.Conv2d(c, 2, 1)

    def forward(self, x):
        e = self.enc(x)
        m = self.mid(nn.functional.max_pool2d(e, 2))
        m = nn.functional.interpolate(m, scale_factor=2)
        return self.head(self.dec(torch.cat([e, m], 1)))
