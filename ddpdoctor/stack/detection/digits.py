"""Canvases with handwritten digits to find: real pixels, and nothing to download.

The digits are the 1797 of scikit-learn (8 x 8 pixels, from the UCI repository). Each canvas is made
when it is asked for, from generators that are seeded by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from ddpdoctor.stack.detection.augmentation import strongly_augmented
from ddpdoctor.stack.detection.scene import SIDE, Scene
from ddpdoctor.stack.extras import need

CLASSES = tuple(map(str, range(10)))
_MOST_DIGITS = 4
_SIZES = (10, 16)
"""Pixels that a digit is high and wide at least and at most, ink or not."""
_INK = 0.15


class CanvasConfig(BaseModel):
    """How many canvases there are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    n_images: PositiveInt = Field(default=1000, ge=10)
    """Canvases in all: 8 of 10 to train on, one each to validate and to test."""


@dataclass(frozen=True)
class Digits:
    """Some of the handwritten digits."""

    pixels: torch.Tensor
    """Digits x 8 x 8, from 0 (paper) to 1 (ink)."""
    labels: NDArray[np.int64]


def load_digits(seed: int) -> tuple[Digits, Digits, Digits]:
    """Return the digits to train, validate and test with: no canvas shares one with another set."""
    found = need("sklearn.datasets", "detection").load_digits()
    pixels, labels = torch.from_numpy(found.images).float() / 16, found.target.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    tenth = len(order) // 10
    parts = order[2 * tenth :], order[:tenth], order[tenth : 2 * tenth]
    train, validation, test = (Digits(pixels[part], labels[part]) for part in parts)
    return train, validation, test


def compose(digits: Digits, seed: Sequence[int]) -> Scene:
    """Return a canvas with up to four digits that hardly overlap; one in twenty is empty.

    The same seed gives the same canvas everywhere.
    """
    generator = np.random.default_rng(seed)
    count = 0 if generator.random() < 0.05 else int(generator.integers(1, _MOST_DIGITS + 1))
    image = torch.zeros(1, SIDE, SIDE)
    boxes: list[tuple[int, int, int, int]] = []
    labels: list[int] = []
    for chosen in generator.integers(len(digits.labels), size=count):
        size = int(generator.integers(*_SIZES, endpoint=True))
        digit = torch.nn.functional.interpolate(
            digits.pixels[chosen][None, None], size=(size, size), mode="bilinear"
        )[0, 0]
        rows, columns = (torch.nonzero(digit.amax(dim) > _INK)[:, 0] for dim in (1, 0))
        x, y = generator.integers(0, SIDE - size, size=2, endpoint=True).tolist()
        box = (
            x + int(columns[0]),
            y + int(rows[0]),
            x + int(columns[-1]) + 1,
            y + int(rows[-1]) + 1,
        )
        if all(_apart(box, other) for other in boxes):
            place = image[0, y : y + size, x : x + size]
            torch.maximum(place, digit, out=place)
            boxes.append(box)
            labels.append(int(digits.labels[chosen]))
    return Scene(
        image,
        torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4) / SIDE,
        torch.tensor(labels, dtype=torch.int64),
    )


class Canvases(Sequence[Scene]):
    """Canvases that stay the same."""

    def __init__(self, digits: Digits, length: int, seed: Sequence[int]) -> None:
        self.scenes = [compose(digits, [*seed, index]) for index in range(length)]

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: int) -> Scene:  # type: ignore[override]  # no slices
        return self.scenes[index]


class AugmentedCanvases(Sequence[Scene]):
    """Canvases to train on: strongly augmented before `stop_epoch`, and as they are from it on.

    What is done to a canvas follows from seed, epoch and its number alone. So it does not matter
    which rank or which worker gets it, and a resumed training sees what one that never stopped
    would have.
    """

    def __init__(self, canvases: Canvases, stop_epoch: int, seed: int) -> None:
        self.canvases = canvases
        self.stop_epoch = stop_epoch
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch's augmentation."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.canvases)

    def __getitem__(self, index: int) -> Scene:  # type: ignore[override]  # no slices
        scene = self.canvases[index]
        if self.epoch >= self.stop_epoch:
            return scene
        generator = np.random.default_rng([self.seed, self.epoch, index])
        partner = self.canvases[int(generator.integers(len(self)))]
        return strongly_augmented(scene, partner, generator)


def _apart(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> bool:
    """Whether two boxes share at most a pixel's width."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide <= 1 or high <= 1
