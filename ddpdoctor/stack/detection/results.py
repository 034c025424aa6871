"""What a training came to: a typed result, written as JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ddpdoctor.stack.checkpoint import replacing
from ddpdoctor.stack.resume import Epoch


class DetectionResult(BaseModel):
    """What a training came to. Metrics are mean average precisions, from 0 to 1."""

    model_config = ConfigDict(frozen=True)

    schema_version: int = 1
    n_train: int
    """Images, as the next two."""
    n_validation: int
    n_test: int
    world_size: int
    stop_epoch: int
    """The epoch at which stage 2 began, counted from 0."""
    best_epoch: int
    best_stage: int
    validation_map: float
    """Of the best epoch, by which it was chosen; the mean over IoU from 0.5 to 0.95."""
    test_map: float
    test_map50: float
    """With every detection counted whose IoU is 0.5 or more."""
    baseline_map: float
    """On the test images, of always naming each class at its mean box of the training images."""
    refreshes: int
    """How often stage 2 went back to the best weights of stage 1."""
    history: list[Epoch]
    options: dict[str, Any]
    checkpoint: Path
    """The best weights."""
    seconds: float

    @property
    def ratio(self) -> float:
        """Precision as a multiple of the baseline's: above 1 is learning."""
        return self.test_map / self.baseline_map if self.baseline_map else math.inf

    @property
    def sentence(self) -> str:
        """One line for people."""
        return (
            f"test mAP {self.test_map:.3f} (at IoU 0.5: {self.test_map50:.3f}), of the mean boxes "
            f"{self.baseline_map:.3f}; {self.n_train} + {self.n_validation} + {self.n_test} images "
            f"on {self.world_size} rank(s), best epoch {self.best_epoch + 1} in stage "
            f"{self.best_stage}, {self.seconds:.1f} s; {self.checkpoint.parent}/results.json\n"
        )

    def write(self, folder: Path) -> None:
        """Write results.json. For rank 0 alone. Raises CheckpointError where the disk refuses."""
        with replacing(folder / "results.json") as file:
            file.write(self.model_dump_json(indent=2).encode() + b"\n")
