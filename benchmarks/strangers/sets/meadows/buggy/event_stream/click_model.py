from torch import nn


class ClickModel(nn.Module):
    def __init__(self, features=8):
        super().__init__()
        self.deep = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, 1))
        self.wide = nn.Linear(features, 1)

    def forward(self, x):
        return (self.deep(x) + self.wide(x)).squeeze(-1)
