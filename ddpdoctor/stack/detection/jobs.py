"""The command `train detection`: all its options, and what it does."""

from __future__ import annotations

from ddpdoctor.stack.config import LaunchOptions
from ddpdoctor.stack.detection.train import DetectionConfig, train_on_digits


class TrainDetection(DetectionConfig, LaunchOptions):
    """Train a detector of handwritten digits, in two stages.

    Alone, or on four ranks: torchrun --nproc-per-node=4 -m ddpdoctor train detection
    """

    def run(self) -> str:
        """Train, and return one line about it."""
        return train_on_digits(**self.model_dump()).sentence
