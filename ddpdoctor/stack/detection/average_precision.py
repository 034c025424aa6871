"""Mean average precision, as COCO defines it, from the detections of all images at once.

It is no mean over images, so it cannot be put together from the values of ranks: each rank gathers
all detections (`evaluation.predict_ragged`), and calculates the same number from them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ddpdoctor.stack.detection.boxes import overlaps

THRESHOLDS = tuple(np.linspace(0.5, 0.95, 10).round(2).tolist())
"""Of the IoU from which on a detection counts as right."""
_RECALLS = np.linspace(0, 1, 101)


def mean_average_precision(
    detections: Sequence[torch.Tensor],
    truths: Sequence[tuple[torch.Tensor, torch.Tensor]],
    thresholds: Sequence[float] = THRESHOLDS,
) -> float:
    """Return the mean over classes and thresholds, from 0 to 1; 0 where there is no object at all.

    `detections` has a table per image (score, class, x1, y1, x2, y2), in the order of the images;
    `truths` the boxes (corners) and labels of each. Equal scores rank in the order of the images,
    so the result depends on nothing else.
    """
    labels = torch.cat([labels for _, labels in truths]) if truths else torch.zeros(0)
    precisions = [
        _average_precision(detections, truths, label, thresholds)
        for label in sorted(set(labels.tolist()))
    ]
    return float(np.mean(precisions)) if precisions else 0.0


def _average_precision(
    detections: Sequence[torch.Tensor],
    truths: Sequence[tuple[torch.Tensor, torch.Tensor]],
    label: int,
    thresholds: Sequence[float],
) -> float:
    """Return that of one class, the mean over the thresholds."""
    scores: list[NDArray[np.float64]] = []
    hits: list[NDArray[np.bool_]] = []
    total = 0
    for table, (boxes, labels) in zip(detections, truths, strict=True):
        mine = table[table[:, 1] == label]
        mine = mine[torch.argsort(mine[:, 0], descending=True, stable=True)]
        wanted = boxes[labels == label].to(mine.dtype)
        total += len(wanted)
        scores.append(mine[:, 0].numpy())
        iou = overlaps(mine[:, None, 2:], wanted)[0].numpy()
        hits.append(np.array([_hits(iou, threshold) for threshold in thresholds]))
    order = np.argsort(-np.concatenate(scores), kind="stable")
    ranked = np.concatenate(hits, axis=1)[:, order]
    return float(np.mean([_area(row, total) for row in ranked]))


def _hits(iou: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Say which detections of an image, surest first, are right; each object counts once."""
    taken = np.zeros(iou.shape[1], dtype=bool)
    right = np.zeros(iou.shape[0], dtype=bool)
    for number, row in enumerate(iou):
        free = np.where(taken, -1.0, row)
        if len(free) and free.max() >= threshold:
            taken[free.argmax()] = right[number] = True
    return right


def _area(right: NDArray[np.bool_], total: int) -> float:
    """Return the area under precision over recall, at 101 recalls, each with the best to come."""
    correct = np.cumsum(right)
    precision = correct / np.arange(1, len(right) + 1)
    best_to_come = np.maximum.accumulate(precision[::-1])[::-1]
    reached = np.searchsorted(correct / total, _RECALLS, side="left")
    return float(np.append(best_to_come, 0.0)[np.minimum(reached, len(right))].mean())
