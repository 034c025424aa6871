import torch.nn as nn


class TideNet(nn.Module):
    def __init__(self, length, horizon, width=48):
        super().__init__()
        self.inp = nn.Linear(length, width)
        self.mid = nn.GRUCell(width, width)
        self.out = nn.Linear(width, horizon)
        self.width = width

    def forward(self, x):
        h = x.new_zeros(len(x), self.width)
        e = self.inp(x).relu()
        for _ in range(2):
            h = self.mid(e, h)
        return self.out(h)
