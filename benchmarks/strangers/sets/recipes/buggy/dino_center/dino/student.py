from torch import nn


class Head(nn.Module):
    def __init__(self, d=8, out=12):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(d, 32), nn.GELU(), nn.Linear(32, out))

    def forward(self, x):
        return self.mlp(x)
