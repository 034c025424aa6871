"""Handwritten digits, and the noise that each of them is mixed with.

scikit-learn's 1797 digits of 8 x 8 pixels, from the UCI repository: nothing is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from ddpdoctor.stack.extras import need

Floats = NDArray[np.float64]
SIDE = 8
CLASSES = 10


@dataclass(frozen=True)
class Digits:
    """Images (n x 1 x 8 x 8, from -1 to 1), what they show, and what a teacher sees in them."""

    images: torch.Tensor
    labels: torch.Tensor
    features: torch.Tensor
    """n x 9, of length 1."""


class Teacher:
    """Tells digits apart: what the hidden layers of the network are aligned with.

    Linear discriminant analysis, fitted to the training images. It stands in for the large
    pretrained encoder that representation alignment takes on real images (arXiv:2410.06940).
    """

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        analysis = need("sklearn.discriminant_analysis", "generation").LinearDiscriminantAnalysis
        # Corner pixels are the same in all images; a little shrinkage copes with that.
        self._analysis = analysis(solver="eigen", shrinkage=0.1)
        self._analysis.fit(_flat(images), labels.numpy())

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Return one unit vector per image (n x 9)."""
        seen = torch.from_numpy(self._analysis.transform(_flat(images))).float()
        return torch.nn.functional.normalize(seen, dim=1)

    def recognise(self, images: torch.Tensor) -> torch.Tensor:
        """Return which digit each image shows."""
        return torch.from_numpy(self._analysis.predict(_flat(images)))


def load_digits(seed: int) -> tuple[Digits, Digits, Teacher]:
    """Return training and validation digits, 80:20, and the teacher. The same on every rank."""
    loaded = need("sklearn.datasets", "generation").load_digits()
    images = torch.from_numpy(loaded.images).float()[:, None] / 8 - 1
    labels = torch.from_numpy(loaded.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    train, validation = order[: len(order) * 4 // 5], order[len(order) * 4 // 5 :]
    teacher = Teacher(images[train], labels[train])
    parts = [
        Digits(images[part], labels[part], teacher.features(images[part]))
        for part in (train, validation)
    ]
    return parts[0], parts[1], teacher


class Noised(Dataset[dict[str, Any]]):
    """Digits, each with a time and a noise image of its own, drawn anew in each epoch.

    A rank draws its noise from a generator of its own, apart from the one that deals the order,
    which must be the same everywhere. It is seeded for each sample, so the noise depends on seed,
    epoch and index: not on the rank that draws it, nor on what was drawn before a resume.
    """

    def __init__(self, digits: Digits, seed: int, draws: int = 1) -> None:
        self.digits = digits
        self.seed = seed
        self.draws = draws
        """How many samples each digit makes, with a noise each."""
        self.epoch = 0
        self.generator = torch.Generator()

    def draw_for(self, epoch: int) -> None:
        """Have other noise from now on.

        Not called `set_epoch`: accelerate's loaders call that by themselves, on some numbers of
        ranks, and with a count of their own, which would have validation noise change (1.15).
        """
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.digits.labels) * self.draws

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.generator.manual_seed(seed_of(self.seed, self.epoch, index))
        which = index // self.draws
        return {
            "image": self.digits.images[which],
            "label": self.digits.labels[which],
            "feature": self.digits.features[which],
            "time": torch.rand((), generator=self.generator),
            "noise": torch.randn(1, SIDE, SIDE, generator=self.generator),
        }


def seed_of(*numbers: int) -> int:
    """Return one seed that differs wherever the numbers do."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _flat(images: torch.Tensor) -> Floats:
    flat: Floats = images.flatten(1).double().numpy()
    return flat
