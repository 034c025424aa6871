import torch.nn as nn


class HeatmapNet(nn.Module):
    def __init__(self, points=4, width=12):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(width, points, 2, stride=2)

    def forward(self, x):
        return self.up(self.down(x))
