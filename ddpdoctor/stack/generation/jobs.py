"""The command `train generation`: all its options, and what it does."""

from __future__ import annotations

from ddpdoctor.stack.config import LaunchOptions
from ddpdoctor.stack.generation.train import GenerationConfig, train_generation


class TrainGeneration(GenerationConfig, LaunchOptions):
    """Train a generator of handwritten digits, by accelerate.

    Alone, or on four ranks: torchrun --nproc-per-node=4 -m ddpdoctor train generation
    """

    def run(self) -> str:
        """Train, and return one line about it."""
        return train_generation(**self.model_dump()).sentence
