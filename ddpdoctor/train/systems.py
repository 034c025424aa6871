"""What can be trained, and what can be predicted. A new system registers itself here, only."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel


class Options(Protocol):
    """A pydantic model with all options of a command as its fields."""

    def run(self) -> str:
        """Do it, and return what came of it as text for stdout. Raises StackError."""


@dataclass(frozen=True)
class System:
    """One command."""

    summary: str
    extra: str
    """The extra of pyproject.toml that has all it imports."""
    modules: tuple[str, ...]
    """What it imports, by which one sees whether the extra is installed."""
    place: str
    """Module and class of its Options. Its docstring is the help text."""

    def load(self) -> type[BaseModel]:
        """Import the class. It imports torch, which takes a second or two."""
        module, name = self.place.split(":")
        kind: type[BaseModel] = getattr(import_module(module), name)
        return kind


_CRYSTAL = ("torch", "ase", "pymatgen", "vesin", "matplotlib")

TRAIN = {
    "crystal": System(
        "Train a graph transformer on properties of crystals.",
        "crystal",
        _CRYSTAL,
        "ddpdoctor.stack.crystal.jobs:TrainCrystal",
    ),
    "protein": System(
        "Train a model of masked residues on the backbones of proteins.",
        "protein",
        ("torch", "gemmi"),
        "ddpdoctor.stack.protein.jobs:TrainProtein",
    ),
    "detection": System(
        "Train a detector of handwritten digits in two stages.",
        "detection",
        ("torch", "scipy", "sklearn"),
        "ddpdoctor.stack.detection.jobs:TrainDetection",
    ),
    "generation": System(
        "Train a generator of handwritten digits, by accelerate.",
        "generation",
        ("torch", "accelerate", "sklearn", "matplotlib"),
        "ddpdoctor.stack.generation.jobs:TrainGeneration",
    ),
}

PREDICT = {
    "crystal": System(
        "Predict properties of crystals by a checkpoint.",
        "crystal",
        _CRYSTAL,
        "ddpdoctor.stack.crystal.jobs:PredictCrystal",
    ),
}
