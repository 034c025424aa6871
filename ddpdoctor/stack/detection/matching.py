"""The loss of set prediction: which prediction is to claim which object, and how well it does.

One prediction for each object, so that a second one for the same object is an error (Hungarian
matching, arXiv:2005.12872).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ddpdoctor.stack.detection.boxes import centred, overlaps
from ddpdoctor.stack.detection.scene import Batch
from ddpdoctor.stack.extras import need

CLASS_WEIGHT, DISTANCE_WEIGHT, OVERLAP_WEIGHT = 2.0, 5.0, 2.0
_ALPHA, _GAMMA = 0.25, 2.0


@torch.no_grad()
def match(logits: torch.Tensor, boxes: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return for each object of the batch the cell that is to claim it.

    Of all ways to give each object of an image a cell of its own, the cheapest in the terms of the
    loss. `logits` are images x cells x classes, `boxes` images x cells x 4. An image with more
    objects than cells leaves some of them unclaimed: they get -1.
    """
    solve: Any = need("scipy.optimize", "detection").linear_sum_assignment
    cells = torch.full_like(batch.labels, -1)
    probability = logits.to(boxes.dtype).sigmoid()
    for scene in sorted(set(batch.scene.tolist())):
        here = torch.nonzero(batch.scene == scene)[:, 0]
        sure = probability[scene][:, batch.labels[here]]
        away = torch.cdist(centred(boxes[scene]), centred(batch.boxes[here]), p=1)
        overlap = overlaps(boxes[scene][:, None], batch.boxes[here])[1]
        cost = -CLASS_WEIGHT * sure + DISTANCE_WEIGHT * away - OVERLAP_WEIGHT * overlap
        # A loss that is not a number is the trainer's to report; the solver only must not choke.
        claimed, claims = solve(cost.nan_to_num(1e9, 1e9, -1e9).cpu().numpy())
        cells[here[torch.as_tensor(claims, device=here.device)]] = torch.as_tensor(
            claimed, device=cells.device
        )
    return cells


def detection_loss_sum(logits: torch.Tensor, boxes: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Add up the losses of a batch, to be divided by the global number of objects.

    Focal loss of every cell's scores, and of each claimed object the distance and the overlap of
    its box. Without any object, or any image, it depends on every parameter all the same: DDP on
    the other ranks waits for the gradients of this one.
    """
    cells = match(logits, boxes, batch)
    claimed = cells >= 0
    where = (batch.scene[claimed], cells[claimed])
    wanted = torch.zeros_like(logits, dtype=boxes.dtype)
    wanted[(*where, batch.labels[claimed])] = 1.0
    found, true = boxes[where], batch.boxes[claimed]
    distance = (centred(found) - centred(true)).abs().sum()
    overlap = (1 - overlaps(found, true)[1]).sum()
    scores = CLASS_WEIGHT * focal(logits.to(boxes.dtype), wanted).sum()
    return scores + DISTANCE_WEIGHT * distance + OVERLAP_WEIGHT * overlap


def focal(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return the focal loss (arXiv:1708.02002) of each score, in which sure ones hardly count."""
    probability = logits.sigmoid()
    entropy = nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    wrong = probability * (1 - wanted) + (1 - probability) * wanted
    share = _ALPHA * wanted + (1 - _ALPHA) * (1 - wanted)
    return share * wrong**_GAMMA * entropy
