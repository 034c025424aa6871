import torch
import torch.nn as nn


class MaskedAutoencoder(nn.Module):
    def __init__(self, patch=8, dim=24):
        super().__init__()
        self.patch, self.dim = patch, dim
        self.patch_embed = nn.Linear(patch, dim)
        self.mask_token = nn.Parameter(torch.zeros(dim))
        self.decoder = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, patch))

    def encode(self, x):
        return self.patch_embed(x).mean(1)

    def forward(self, x, mask_ratio):
        mask = (torch.rand(x.shape[:2]) < mask_ratio).unsqueeze(-1)
        h = self.patch_embed(x)
        h = torch.where(mask, self.mask_token.expand_as(h), h) + h.mean(1, keepdim=True)
        return ((self.decoder(h) - x).pow(2) * mask).sum() / mask.sum().clamp(min=1)


def mae_toy(**kw):
    return MaskedAutoencoder(**kw)
