"""What a training came to: a typed result, written as JSON."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from ddpdoctor.stack.checkpoint import replacing
from ddpdoctor.stack.resume import Epoch


class ProteinResult(BaseModel):
    """What a training came to. Losses are cross entropies of masked residues, in nats."""

    model_config = ConfigDict(frozen=True)

    schema_version: int = 1
    n_train: int
    """Chains, as the next two."""
    n_validation: int
    n_test: int
    left_out: list[str]
    """One line for each file that could not be used."""
    world_size: int
    best_epoch: int
    validation_loss: float
    """Of the best epoch, by which it was chosen."""
    test_loss: float
    baseline_loss: float
    """Of always giving each amino acid the share that it has in the training chains."""
    test_accuracy: float
    """Share of the masked residues that were given the highest score."""
    baseline_accuracy: float
    """Of always naming the commonest amino acid."""
    history: list[Epoch]
    options: dict[str, Any]
    checkpoint: Path
    """The best weights."""
    seconds: float

    @property
    def ratio(self) -> float:
        """Perplexity as a share of the baseline's: below 1 is learning."""
        return math.exp(self.test_loss - self.baseline_loss)

    @property
    def sentence(self) -> str:
        """One line for people."""
        return (
            f"test perplexity {math.exp(self.test_loss):.2f}, {self.ratio:.2f} of the "
            f"composition's; {self.test_accuracy:.0%} of masked residues right, "
            f"{self.baseline_accuracy:.0%} by naming the commonest; {self.n_train} + "
            f"{self.n_validation} + {self.n_test} chains on {self.world_size} rank(s), best epoch "
            f"{self.best_epoch + 1}, {self.seconds:.1f} s; {self.checkpoint.parent}/results.json\n"
        )

    def write(self, folder: Path) -> None:
        """Write results.json. For rank 0 alone. Raises CheckpointError where the disk refuses."""
        with replacing(folder / "results.json") as file:
            file.write(self.model_dump_json(indent=2).encode() + b"\n")
