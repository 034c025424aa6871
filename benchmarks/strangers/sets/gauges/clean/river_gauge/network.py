"""Rainfall-runoff network and the toy catchment record."""
import torch
from torch import nn
from torch.utils.data import TensorDataset


class Runoff(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, forcing):
        h, _ = self.lstm(forcing)
        return self.out(h[:, -1]).squeeze(-1)


def catchment(days=240, window=15):
    g = torch.Generator().manual_seed(40)
    forcing = torch.rand(days, window, 3, generator=g)
    decay = 0.8 ** torch.arange(window - 1, -1, -1).float()
    return TensorDataset(forcing, (forcing[..., 0] * decay).sum(1) * 0.4)
