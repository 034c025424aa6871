import torch.nn as nn


class SimSiam(nn.Module):
    def __init__(self, dim_in, dim, pred_dim):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim_in, dim), nn.BatchNorm1d(dim), nn.ReLU(),
                                     nn.Linear(dim, dim), nn.LayerNorm(dim))
        self.predictor = nn.Sequential(nn.Linear(dim, pred_dim), nn.ReLU(), nn.Linear(pred_dim, dim))

    def forward(self, x):
        z = self.encoder(x)
        return self.predictor(z), z.detach()
