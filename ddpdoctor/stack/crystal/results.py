"""What a training came to: a typed result, written as JSON and as two plots."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ddpdoctor.stack.checkpoint import replacing
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.resume import Epoch


class Prediction(BaseModel):
    """One structure of the test set."""

    model_config = ConfigDict(frozen=True)

    index: int
    """Position in the list or file that was given."""
    formula: str
    labels: list[float]
    """One for each target."""
    predicted: list[float]


class Target(BaseModel):
    """What became of one property. Errors are in its units (log10 if that was trained on)."""

    model_config = ConfigDict(frozen=True)

    name: str
    test_mae: float
    baseline_mae: float
    """Test error of always predicting the mean of the training labels."""


class TrainingResult(BaseModel):
    """What a training came to.

    Errors are in the units that were trained on (log10 if asked). With several targets those of
    the whole are means over the targets, each in units of its training labels' deviation.
    """

    model_config = ConfigDict(frozen=True)

    schema_version: int = 2
    n_train: int
    n_validation: int
    n_test: int
    world_size: int
    best_epoch: int
    validation_mae: float
    """Mean absolute error of the best epoch, by which it was chosen."""
    test_mae: float
    baseline_mae: float
    """Test error of always predicting the mean of the training labels."""
    targets: list[Target]
    history: list[Epoch]
    test: list[Prediction]
    options: dict[str, Any]
    checkpoint: Path
    """The best weights."""
    seconds: float

    @property
    def ratio(self) -> float:
        """Test error as a share of the mean predictor's: below 1 is learning."""
        return self.test_mae / self.baseline_mae if self.baseline_mae else math.inf

    @property
    def sentence(self) -> str:
        """What a person wants to know of it first."""
        each = "".join(
            f"; {target.name} {target.test_mae:.4f} against {target.baseline_mae:.4f}"
            for target in self.targets
            if len(self.targets) > 1
        )
        return (
            f"test error {self.test_mae:.4f}, {self.ratio:.2f} of the mean predictor's{each}; "
            f"{self.n_train} + {self.n_validation} + {self.n_test} structures on "
            f"{self.world_size} rank(s), best epoch {self.best_epoch + 1}, "
            f"{self.seconds:.1f} s; {self.options['output_dir']}/results.json\n"
        )

    def write(self, folder: Path) -> None:
        """Write results.json, learning_curve.png and parity.png. For rank 0 alone.

        Raises CheckpointError where the disk refuses.
        """
        with replacing(folder / "results.json") as file:
            file.write(self.model_dump_json(indent=2).encode() + b"\n")
        _plot(folder / "learning_curve.png", self._draw_learning_curve)
        _plot(folder / "parity.png", self._draw_parity)

    def _draw_learning_curve(self, axes: Any) -> None:
        epochs = [record.epoch + 1 for record in self.history]
        axes.plot(epochs, [record.train_loss for record in self.history], label="training")
        axes.plot(epochs, [record.metric for record in self.history], label="validation")
        axes.axhline(self.baseline_mae, color="gray", ls=":", label="mean predictor (test)")
        axes.axvline(self.best_epoch + 1, color="gray", lw=0.5)
        axes.set(xlabel="epoch", ylabel="mean absolute error", yscale="log")
        axes.legend()

    def _draw_parity(self, axes: Any) -> None:
        for column, target in enumerate(self.targets):
            labels = [item.labels[column] for item in self.test]
            predicted = [item.predicted[column] for item in self.test]
            axes.scatter(labels, predicted, s=12, label=f"{target.name}, MAE {target.test_mae:.3f}")
        axes.axline((labels[0], labels[0]), slope=1, color="gray", lw=0.5)
        axes.set(xlabel="label", ylabel="prediction", title=f"test MAE {self.test_mae:.3f}")
        axes.legend()
        axes.set_aspect("equal", adjustable="datalim")


def _plot(path: Path, draw: Any) -> None:
    # A Figure of its own, without pyplot: no window system, and no global state to leave behind.
    figure = need("matplotlib.figure", "crystal").Figure(figsize=(5, 4), layout="constrained")
    draw(figure.subplots())
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=120)
