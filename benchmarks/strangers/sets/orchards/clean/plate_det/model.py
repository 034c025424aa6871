import torch.nn as nn


class BoxNet(nn.Module):
    """Regress one (cx, cy, w, h) box per image."""

    def __init__(self, side):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
            nn.Flatten(),
        )
        flat = 32 * (side // 4) ** 2
        self.neck = nn.Sequential(nn.Linear(flat, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU())
        self.box = nn.Linear(1024, 4)

    def forward(self, x):
        return self.box(self.neck(self.body(x))).sigmoid()
