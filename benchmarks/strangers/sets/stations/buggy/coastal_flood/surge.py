import torch
import torch.nn as nn


class SurgeNet(nn.Module):
    def __init__(self, channels=3, width=16):
        super().__init__()
        self.up = nn.Conv1d(channels, width, 3)
        self.mid = nn.Conv1d(width, width, 1)
        self.down = nn.Conv1d(width, 1, 1)

    def forward(self, x):
        h = torch.relu(self.up(x))
        h = h + torch.relu(self.mid(h))
        return self.down(h).squeeze(1)


class Storms:
    """Wind, pressure and bathymetry along one strip; target is the peak surge."""

    def __init__(self, strip, cells=24, batch=16):
        self.g = torch.Generator().manual_seed(4000 + strip)
        self.cells, self.batch = cells, batch
        self.depth = torch.rand(cells, generator=self.g)

    def draw(self):
        wind = torch.randn(self.batch, self.cells, generator=self.g)
        pressure = torch.randn(self.batch, self.cells, generator=self.g)
        depth = self.depth.expand(self.batch, -1)
        field = torch.stack([wind, pressure, depth], dim=1)
        neighbours = (wind.roll(1, 1) + wind.roll(-1, 1)) / 2
        surge = torch.relu(wind + 0.5 * neighbours) * (1.2 - depth) - 0.3 * pressure
        return field, surge
