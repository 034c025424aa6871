import torch
import torch.nn as nn
import torch.nn.functional as F

from dist_utils import gather_with_grad, rank


class NTXent(nn.Module):
    """Cross-view InfoNCE with negatives from the global batch."""

    def __init__(self, temperature=0.2):
        super().__init__()
        self.t = temperature

    def forward(self, za, zb):
        za, zb = F.normalize(za, dim=1), F.normalize(zb, dim=1)
        n = za.shape[0]
        target = torch.arange(n) + rank() * n
        bank_a, bank_b = gather_with_grad(za), gather_with_grad(zb)
        ab = F.cross_entropy(za @ bank_b.t() / self.t, target)
        ba = F.cross_entropy(zb @ bank_a.t() / self.t, target)
        return 0.5 * (ab + ba)
