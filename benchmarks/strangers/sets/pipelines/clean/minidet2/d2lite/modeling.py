from torch import nn


class ToyRPN(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.trunk = nn.Linear(8, dim)
        self.objectness = nn.Linear(dim, 1)
        nn.init.constant_(self.objectness.bias, -0.2)

    def forward(self, x):
        return self.objectness(self.trunk(x).relu()).squeeze(-1)
