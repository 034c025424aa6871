"""Boxes, as centre and size (to predict) or as two corners (to compare)."""

from __future__ import annotations

import torch


def corners(boxes: torch.Tensor) -> torch.Tensor:
    """Turn (..., cx, cy, w, h) into (..., x1, y1, x2, y2)."""
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([centre - half, centre + half], dim=-1)


def centred(boxes: torch.Tensor) -> torch.Tensor:
    """Turn (..., x1, y1, x2, y2) into (..., cx, cy, w, h)."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(low + high) / 2, high - low], dim=-1)


def overlaps(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return IoU and generalised IoU of boxes given by their corners; both sides broadcast.

    The generalised one (arXiv:1902.09630) has a gradient where boxes do not meet: from it the share
    of the smallest box around both that neither covers is taken away.
    """
    low = torch.maximum(one[..., :2], other[..., :2])
    high = torch.minimum(one[..., 2:], other[..., 2:])
    shared = _area(low, high)
    union = _area(one[..., :2], one[..., 2:]) + _area(other[..., :2], other[..., 2:]) - shared
    around = _area(
        torch.minimum(one[..., :2], other[..., :2]), torch.maximum(one[..., 2:], other[..., 2:])
    )
    iou = shared / union.clamp(min=1e-9)
    return iou, iou - (around - union) / around.clamp(min=1e-9)


def _area(low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    return (high - low).clamp(min=0).prod(-1)
