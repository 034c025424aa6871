"""Options, parsed and frozen before anything distributed happens.

An option that is refused on one rank after the group exists leaves the peers waiting; and a plain
dictionary that becomes a config halfway is used too early by somebody.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from ddpdoctor.stack.errors import ConfigError
from ddpdoctor.stack.process_group import Backend
from ddpdoctor.stack.scaling import Rule, per_rank_batch, scaled_rate

Config = TypeVar("Config", bound=BaseModel)


@dataclass(frozen=True)
class Flags:
    """Other names of an option on a command line, without their dashes."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What a config comes to on so many ranks."""

    batch_size: int
    """Samples that a rank loads at a time."""
    global_batch: int
    """Samples that one optimizer step sees, on all ranks together."""
    learning_rate: float
    """The highest one."""


class TrainingConfig(BaseModel):
    """What the trainer needs to know, whatever it trains."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )

    output_dir: Path = Path("output")
    """Folder for checkpoints and results, made if it does not exist. One training at a time
    owns it."""
    batch_size: PositiveInt = 64
    """Samples per rank: one optimizer step sees batch_size x ranks x accumulation_steps."""
    global_batch: PositiveInt | None = None
    """Samples that one optimizer step sees on all ranks together: batch_size follows from it, and
    any number of ranks that divides it trains the same way."""
    n_epochs: Annotated[PositiveInt, Flags(("epochs",))] = 50
    """How often every sample is seen."""
    learning_rate: Annotated[PositiveFloat, Flags(("lr",))] = 2e-3
    """The highest one."""
    learning_rate_rule: Rule = "keep"
    """How the learning rate follows a global batch that is not base_batch: in proportion (linear,
    for SGD), by the square root (sqrt, for Adam), or not at all."""
    base_batch: PositiveInt | None = None
    """The global batch that learning_rate was tuned with, in samples."""
    warmup: float = Field(default=0.05, ge=0, le=1)
    """Share of the training over which the learning rate rises; then it falls as a cosine."""
    weight_decay: NonNegativeFloat = 0.01
    """That of AdamW."""
    clip_norm: PositiveFloat = 1.0
    """Longer gradients are shortened to this norm."""
    accumulation_steps: PositiveInt = 1
    """Batches per optimizer step."""
    use_amp: Annotated[bool, Flags(("amp",))] = False
    """Mixed precision."""
    amp_dtype: Literal["auto", "float16", "bfloat16"] = "auto"
    """The type of mixed precision; float16 comes with a gradient scaler. auto: float16 on a GPU,
    bfloat16 on the CPU."""
    ema_decay: float | None = Field(default=0.99, ge=0, lt=1)
    """Average the weights over about 1/(1 - ema_decay) steps, and evaluate those; none: do not."""
    random_seed: Annotated[NonNegativeInt, Flags(("seed",))] = 42
    """Decides the split, the initial weights, the order and the noise."""
    num_workers: NonNegativeInt | None = None
    """Processes per rank that prepare batches. Left out: on a GPU this rank's share of the host's
    CPUs less one, at most 8; on the CPU, where the training itself needs them, 0."""
    resume: bool = False
    """Go on from the last checkpoint in output_dir; without one, begin."""
    checkpoint_every: PositiveInt | None = None
    """Optimizer steps between checkpoints within an epoch; there is always one at its end."""
    keep_checkpoints: PositiveInt = 2
    """How many of the last to keep, beside the best."""
    tensorboard: bool = False
    """Write the curves for TensorBoard, too, into output_dir/tensorboard."""
    profile_steps: PositiveInt | None = None
    """Steps of rank 0 that torch.profiler records, after the first ten, into output_dir."""

    @model_validator(mode="after")
    def _a_rule_has_a_base(self) -> Self:
        if self.learning_rate_rule != "keep" and self.base_batch is None:
            raise ValueError(
                f"learning_rate_rule={self.learning_rate_rule} needs base_batch, the global batch "
                "that learning_rate was tuned with"
            )
        return self

    def plan(self, world_size: int) -> Plan:
        """Return the batches and the learning rate on `world_size` ranks.

        Raises ConfigError where they cannot share `global_batch` evenly.
        """
        batch_size, steps = self.batch_size, self.accumulation_steps
        if self.global_batch is not None:
            batch_size = per_rank_batch(self.global_batch, world_size, steps)
        global_batch = batch_size * world_size * steps
        base = self.base_batch or global_batch
        rate = scaled_rate(self.learning_rate, base, global_batch, self.learning_rate_rule)
        return Plan(batch_size, global_batch, rate)

    def decisive(self) -> dict[str, Any]:
        """Return the options that decide how the weights develop: a resumed run must share them."""
        free = {
            "output_dir",
            "num_workers",
            "resume",
            "checkpoint_every",
            "keep_checkpoints",
            "tensorboard",
            "profile_steps",
        }
        return self.model_dump(mode="json", exclude=free)


class LaunchOptions(BaseModel):
    """How the ranks of a command find each other."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    backend: Backend = "auto"
    """How the ranks communicate: nccl, with a GPU each, or gloo, on the CPU."""
    distributed: bool | None = None
    """Insist on a launcher such as torchrun, or on a lone process. Left out, the launcher
    decides."""


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
