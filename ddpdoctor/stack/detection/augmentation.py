"""Strong augmentation, for the first stage of a training."""

from __future__ import annotations

import numpy as np
import torch

from ddpdoctor.stack.detection.scene import SIDE, Scene

_MOST_SHIFT = 8
"""Pixels."""
_VISIBLE = 0.6
"""Share of a box that must be left in the image for its object to count."""


def strongly_augmented(scene: Scene, partner: Scene, generator: np.random.Generator) -> Scene:
    """Return a scene that is shifted, laid over another, and spoilt, each by chance."""
    scene = shifted(scene, *generator.integers(-_MOST_SHIFT, _MOST_SHIFT, size=2, endpoint=True))
    if generator.random() < 0.5:
        scene = overlaid(scene, partner)
    return Scene(spoilt(scene.image, generator), scene.boxes, scene.labels)


def shifted(scene: Scene, right: int, down: int) -> Scene:
    """Move all by whole pixels; objects that are mostly gone are no longer to be found."""
    image = torch.zeros_like(scene.image)
    columns, rows = _overlap(int(right)), _overlap(int(down))
    image[:, rows[0], columns[0]] = scene.image[:, rows[1], columns[1]]
    moved = scene.boxes + torch.tensor([right, down, right, down]) / SIDE
    cut = moved.clamp(0, 1)
    left = (cut[:, 2:] - cut[:, :2]).prod(-1) / (moved[:, 2:] - moved[:, :2]).prod(-1)
    kept = left >= _VISIBLE
    return Scene(image, cut[kept], scene.labels[kept])


def overlaid(scene: Scene, other: Scene) -> Scene:
    """Lay two scenes over each other, with the objects of both."""
    return Scene(
        torch.maximum(scene.image, other.image),
        torch.cat([scene.boxes, other.boxes]),
        torch.cat([scene.labels, other.labels]),
    )


def spoilt(image: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
    """Change contrast and brightness, add noise, and erase a small rectangle."""
    contrast, brightness = generator.uniform(0.6, 1.0), generator.uniform(0.0, 0.2)
    noise = generator.normal(0, generator.uniform(0.0, 0.08), image.shape)
    image = contrast * image + brightness + torch.from_numpy(noise).to(image.dtype)
    x, y = generator.integers(0, SIDE, size=2)
    wide, high = generator.integers(2, 6, size=2)
    image[:, y : y + high, x : x + wide] = brightness
    return image.clamp(0, 1)


def _overlap(shift: int) -> tuple[slice, slice]:
    """Where what is moved by `shift` comes to lie, and where it was."""
    length = SIDE - abs(shift)
    to, origin = max(shift, 0), max(-shift, 0)
    return slice(to, to + length), slice(origin, origin + length)
