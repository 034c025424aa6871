"""One image with its boxes, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ddpdoctor.stack.batch import TensorBatch

SIDE = 32
"""Pixels of an image, each way."""


@dataclass(frozen=True)
class Scene:
    """An image and what is to be found in it, which may be nothing."""

    image: torch.Tensor
    """1 x SIDE x SIDE, from 0 to 1."""
    boxes: torch.Tensor
    """Objects x 4: corners x1, y1, x2, y2, as shares of the image."""
    labels: torch.Tensor
    """One class per object."""


@dataclass(frozen=True)
class Batch(TensorBatch):
    """Some scenes, their objects in one row. It may hold none at all."""

    images: torch.Tensor
    boxes: torch.Tensor
    labels: torch.Tensor
    scene: torch.Tensor
    """For each object, which image of the batch it is in."""

    def __len__(self) -> int:
        return len(self.images)

    @property
    def weight(self) -> int:
        """What the loss is normalised by: the objects."""
        return len(self.labels)


def collate(scenes: Sequence[Scene]) -> Batch:
    """Join scenes to one batch, in torch's default type."""
    real = torch.get_default_dtype()
    counts = torch.tensor([len(scene.labels) for scene in scenes], dtype=torch.int64)
    # Each begins with nothing, as torch joins no empty list.
    return Batch(
        images=torch.stack([scene.image for scene in scenes]).to(real)
        if scenes
        else torch.zeros(0, 1, SIDE, SIDE, dtype=real),
        boxes=torch.cat([torch.zeros(0, 4), *(scene.boxes for scene in scenes)]).to(real),
        labels=torch.cat([torch.zeros(0, dtype=torch.int64), *(scene.labels for scene in scenes)]),
        scene=torch.repeat_interleave(torch.arange(len(scenes)), counts),
    )
