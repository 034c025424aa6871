import torch
import torch.nn.functional as F
from torch import nn

from registry import HEADS


@HEADS.register
class CenterHead(nn.Module):
    """Objectness on the grid, box sides where there is a centre."""

    def __init__(self, width, weight=1.0):
        super().__init__()
        self.obj = nn.Conv2d(width, 1, 1)
        self.side = nn.Conv2d(width, 2, 1)
        self.weight = weight

    def forward(self, feat):
        return self.obj(feat), self.side(feat)

    def loss(self, out, target):
        obj, side = out
        centre = target["centre"]
        mask = (centre > 0).expand_as(side)
        sides = F.l1_loss(side * mask, target["side"] * mask, reduction="sum") / mask.sum().clamp(min=1)
        return {
            "loss_obj": self.weight * F.binary_cross_entropy_with_logits(obj, centre),
            "loss_side": 0.5 * sides,
        }


@HEADS.register
class TextHead(nn.Module):
    """Reads the symbology at the centres."""

    def __init__(self, width, kinds=4, weight=0.3):
        super().__init__()
        self.cls = nn.Conv2d(width, kinds, 1)
        self.weight = weight

    def forward(self, feat):
        return self.cls(feat)

    def loss(self, out, target):
        at = target["centre"][:, 0] > 0
        picked = out.permute(0, 2, 3, 1)[at]
        kinds = target["kind"][at]
        losses = {"loss_kind": self.weight * F.cross_entropy(picked, kinds, reduction="sum") / max(len(kinds), 1)}
        if len(kinds) > 0:
            losses["acc_kind"] = (picked.argmax(1) == kinds).float().mean()
        return losses
