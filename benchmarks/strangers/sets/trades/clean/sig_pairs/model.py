import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.GroupNorm(2, 8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.ReLU(),
        )
        self.head = nn.Linear(16 * 6 * 6, dim)
        # only for the writer-identification stage, kept so that checkpoints fit
        self.writer_head = nn.Linear(dim, 6)
        self.raw_margin = nn.Parameter(torch.tensor(0.2))

    def margin(self):
        return F.softplus(self.raw_margin)

    def forward(self, x):
        return F.normalize(self.head(self.features(x).flatten(1)), dim=1), self.margin()


def contrastive_loss(za, zb, same, margin):
    d = (za - zb).pow(2).sum(1).clamp(min=1e-9).sqrt()
    same = same.to(d.dtype)
    fit = (same * d.pow(2) + (1 - same) * (margin - d).clamp(min=0).pow(2)).mean()
    # a margin that may shrink freely collapses to zero
    return fit + 0.1 * (1.0 - margin).pow(2)
