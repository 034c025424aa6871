"""The commands `train crystal` and `predict crystal`: all their options, and what they do."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, PositiveInt, model_validator

from ddpdoctor.stack.checkpoint import replacing
from ddpdoctor.stack.config import Flags, LaunchOptions
from ddpdoctor.stack.crystal.dataset import dcdft
from ddpdoctor.stack.crystal.predict import predict_from_extxyz
from ddpdoctor.stack.crystal.train import CrystalConfig, train_from_extxyz, train_from_list


class TrainCrystal(CrystalConfig, LaunchOptions):
    """Train a graph transformer on properties of crystals.

    Alone, or on four ranks: torchrun --nproc-per-node=4 -m ddpdoctor train crystal
    """

    extxyz: Path | None = None
    """Extended XYZ file. Left out: 71 elements and the log10 of their bulk moduli in GPa."""
    target: list[str] = Field(default=[])
    """A property in that file to learn; repeat, or use commas, to learn several at once."""

    @model_validator(mode="after")
    def _a_file_has_a_target(self) -> Self:
        if (self.extxyz is None) != (not self.target):
            raise ValueError("--extxyz FILE and --target PROPERTY belong together")
        return self

    def run(self) -> str:
        """Train, and return one line about it."""
        options = self.model_dump(exclude={"extxyz", "target"})
        if self.extxyz is None:
            return train_from_list(*dcdft(), **options).sentence
        return train_from_extxyz(self.extxyz, self.target, **options).sentence


class PredictCrystal(LaunchOptions):
    """Predict properties of crystals by a checkpoint, in the units of the properties."""

    extxyz: Path
    """Extended XYZ file with the structures."""
    checkpoint: Path = Path("output")
    """A checkpoint, or a training's output folder, of which the best is taken."""
    output: Annotated[Path | None, Flags(("o",))] = None
    """CSV file to write, instead of stdout."""
    batch_size: PositiveInt = 64
    """Structures per rank at a time."""

    def run(self) -> str:
        """Predict, and return the table, or one line about it."""
        predicted = predict_from_extxyz(
            self.checkpoint,
            self.extxyz,
            batch_size=self.batch_size,
            distributed=self.distributed,
            backend=self.backend,
        )
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(["index", "formula", *predicted.targets])
        for index, (formula, values) in enumerate(
            zip(predicted.formulas, predicted.values.tolist(), strict=True)
        ):
            writer.writerow([index, formula, *values])
        if self.output is None:
            return table.getvalue()
        with replacing(self.output) as file:
            file.write(table.getvalue().encode())
        return f"{len(predicted.formulas)} structures in {self.output}\n"
