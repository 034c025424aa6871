"""Losses with a wrapper that knows about several workers."""
import torch
from torch import nn

from atoms_lib.registry import register


@register("loss", "l2mae")
class L2MAELoss(nn.Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, pred, target):
        dist = torch.linalg.vector_norm(pred - target, dim=-1)
        return dist.mean() if self.reduction == "mean" else dist.sum()


@register("loss", "energy_mae")
class EnergyMAE(nn.Module):
    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, pred, target):
        return nn.functional.l1_loss(pred, target, reduction=self.reduction)


class DDPLoss(nn.Module):
    """Calls the inner loss on finite predictions only."""

    def __init__(self, loss_fn):
        super().__init__()
        self.loss_fn = loss_fn
        self.loss_fn.reduction = "mean"

    def forward(self, pred, target):
        pred = torch.nan_to_num(pred, nan=0.0)
        return self.loss_fn(pred, target)
