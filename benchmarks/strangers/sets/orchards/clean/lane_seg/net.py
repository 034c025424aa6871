import torch.nn as nn


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU())


class MiniUNet(nn.Module):
    def __init__(self, classes=3, w=8):
        super().__init__()
        self.a, self.b = conv(1, w), conv(w, 2 * w)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(2 * w, w, 2, stride=2)
        self.out = nn.Conv2d(w, classes, 1)

    def forward(self, x):
        a = self.a(x)
        return self.out(self.up(self.b(self.pool(a))) + a)
