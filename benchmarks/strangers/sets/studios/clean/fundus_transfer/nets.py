import torch.nn as nn


def stage(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.ReLU(), nn.AvgPool2d(2))


class FundusNet(nn.Module):
    """stem -> encoder -> upper -> head; the head is new for every task."""

    def __init__(self, outputs, w=12):
        super().__init__()
        self.stem = stage(1, w)
        self.encoder = stage(w, 2 * w)
        self.upper = stage(2 * w, 2 * w)
        self.head = nn.Linear(2 * w * 4, outputs)

    def forward(self, x):
        return self.head(self.upper(self.encoder(self.stem(x))).flatten(1))

    def backbone(self):
        return nn.ModuleList([self.stem, self.encoder, self.upper])
