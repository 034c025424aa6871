"""Options, parsed and frozen before anything distributed happens.

An option that is refused on one rank after the group exists leaves the peers waiting; and a plain
dictionary that becomes a config halfway is used too early by somebody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from ddpdoctor.stack.errors import ConfigError

Config = TypeVar("Config", bound=BaseModel)


class TrainingConfig(BaseModel):
    """What the trainer needs to know, whatever it trains."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    output_dir: Path = Path("output")
    """Made if it does not exist. One training at a time owns it."""
    batch_size: PositiveInt = 64
    """Per rank: one optimizer step sees batch_size x ranks x accumulation_steps samples."""
    n_epochs: PositiveInt = 50
    learning_rate: PositiveFloat = 2e-3
    """The highest one. It is not scaled by the number of ranks."""
    warmup: float = Field(default=0.05, ge=0, le=1)
    """Share of the training over which the learning rate rises; then it falls as a cosine."""
    weight_decay: NonNegativeFloat = 0.01
    clip_norm: PositiveFloat = 1.0
    accumulation_steps: PositiveInt = 1
    use_amp: bool = False
    """Mixed precision: bfloat16 on the CPU, float16 with a gradient scaler on a GPU."""
    ema_decay: float | None = Field(default=0.99, ge=0, lt=1)
    """Average the weights over about 1/(1 - ema_decay) steps, and evaluate those; None: do not."""
    random_seed: NonNegativeInt = 42
    num_workers: NonNegativeInt = 0
    """Processes per rank that prepare batches."""
    resume: bool = False
    """Go on from the last checkpoint in output_dir; without one, begin."""
    checkpoint_every: PositiveInt | None = None
    """Optimizer steps between checkpoints within an epoch; there is always one at its end."""
    keep_checkpoints: PositiveInt = 2
    """How many of the last to keep, beside the best."""

    def decisive(self) -> dict[str, Any]:
        """Return the options that decide how the weights develop: a resumed run must share them."""
        free = {"output_dir", "num_workers", "resume", "checkpoint_every", "keep_checkpoints"}
        return self.model_dump(mode="json", exclude=free)


Backend = Literal["auto", "gloo", "nccl"]


def parse(kind: type[Config], options: dict[str, Any]) -> Config:
    """Make a config of `options`. Raises ConfigError, which names every option that is wrong."""
    try:
        return kind(**options)
    except ValidationError as error:
        raise ConfigError("; ".join(map(_explained, error.errors()))) from error


def _explained(error: Any) -> str:
    name = ".".join(map(str, error["loc"]))
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        return f"there is no option {name}"
    return f"{name}={error['input']!r}: {message.lower()}" if name else message
