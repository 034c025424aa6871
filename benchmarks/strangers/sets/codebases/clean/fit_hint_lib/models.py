import torch.nn as nn


class PlainNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Sequential(nn.Conv2d(3, width, 3, 1, 1), nn.ReLU()),
            nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU()),
            nn.Sequential(nn.Conv2d(2 * width, 2 * width, 3, 2, 1), nn.ReLU()),
        ])
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x):
        feats = []
        for layer in self.layers:
            x = layer(x)
            feats.append(x)
        return self.fc(x.mean((2, 3))), {"feats": feats}


model_dict = {"wide": lambda: PlainNet(24), "thin": lambda: PlainNet(6)}
