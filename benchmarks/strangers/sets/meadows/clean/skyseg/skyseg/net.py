import torch
from torch import nn


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class TinyUNet(nn.Module):
    def __init__(self, classes, width=8):
        super().__init__()
        self.enc = block(3, width)
        self.mid = block(width, width * 2)
        self.dec = block(width * 3, width)
        self.out = nn.Conv2d(width, classes, 1)
        self.down = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2)

    def forward(self, x):
        a = self.enc(x)
        b = self.mid(self.down(a))
        return self.out(self.dec(torch.cat([a, self.up(b)], 1)))
