import torch
import torch.nn as nn
import torch.nn.functional as F


def simclr_loss_func(z1, z2, temperature):
    """Each view is to find the other one among all views of this process."""
    z = F.normalize(torch.cat([z1, z2]), dim=-1)
    scores = (z @ z.t() / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    return F.cross_entropy(scores, torch.arange(len(z)).roll(len(z1)))


class SimCLR(nn.Module):
    def __init__(self, width=16, proj=32, temperature=0.2):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1),
                                      nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.projector = nn.Sequential(nn.Linear(8 * width, proj), nn.LayerNorm(proj), nn.ReLU(), nn.Linear(proj, proj))
        self.temperature = temperature

    def forward(self, x1, x2):
        z1, z2 = (self.projector(self.backbone(x)) for x in (x1, x2))
        return simclr_loss_func(z1, z2, self.temperature), F.normalize(z1, dim=-1).std(0).mean()


METHODS = {"simclr": SimCLR}
