import torch
import torch.nn as nn
import torch.nn.functional as F


class Blur(nn.Module):
    """Binomial low-pass in front of a strided convolution."""

    def __init__(self, ch):
        super().__init__()
        k = torch.tensor([1.0, 3.0, 3.0, 1.0])
        k = k[:, None] * k[None, :]
        self.register_buffer("kernel", (k / k.sum()).expand(ch, 1, 4, 4).clone(), persistent=False)

    def forward(self, x):
        return F.conv2d(F.pad(x, (2, 1, 2, 1), mode="reflect"), self.kernel, groups=x.shape[1])


def block(a, b, down=False):
    layers = [nn.Conv2d(a, b, 3, stride=2 if down else 1, padding=1), nn.GroupNorm(4, b), nn.LeakyReLU(0.2, inplace=True)]
    if down and a > 1:
        layers.insert(0, Blur(a))
    return nn.Sequential(*layers)


class Refiner(nn.Module):
    """Adds detail to a smooth texture."""

    def __init__(self, ch=12):
        super().__init__()
        self.body = nn.Sequential(block(1, ch), block(ch, ch), nn.Conv2d(ch, 1, 3, padding=1))

    def forward(self, x):
        return x + self.body(x)


class PatchCritic(nn.Module):
    def __init__(self, ch=12):
        super().__init__()
        self.body = nn.Sequential(block(1, ch, True), block(ch, 2 * ch, True), nn.Conv2d(2 * ch, 1, 3, padding=1))

    def forward(self, x):
        return self.body(x)
