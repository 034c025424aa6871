from torch import nn


def encoder(d=6, out=12):
    return nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Linear(24, out))


class Online(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = encoder()
        self.predictor = nn.Linear(12, 12)

    def forward(self, x):
        return self.predictor(self.encoder(x))
