"""Batch sizes and learning rates, for any number of ranks. Pure arithmetic.

One number is fixed, the global batch: how many samples one optimizer step sees. What a rank loads
follows from it, so that the same configuration trains the same way on any number of ranks.
"""

from __future__ import annotations

from math import sqrt
from typing import Literal

from ddpdoctor.stack.errors import ConfigError

Rule = Literal["linear", "sqrt", "keep"]


def per_rank_batch(global_batch: int, world_size: int, accumulation_steps: int = 1) -> int:
    """Return how many samples a rank loads at a time.

    Raises ConfigError where that is no whole number: a global batch that changes by rounding is
    the mistake that this is here to prevent.
    """
    pieces = world_size * accumulation_steps
    if global_batch < 1 or pieces < 1 or global_batch % pieces:
        raise ConfigError(
            f"a global batch of {global_batch} is not {world_size} rank(s) times "
            f"{accumulation_steps} step(s) of whole samples: choose a multiple of {pieces}"
        )
    return global_batch // pieces


def scaled_rate(base_rate: float, base_batch: int, global_batch: int, rule: Rule) -> float:
    """Return the learning rate for another global batch than the one that it was tuned with.

    "linear" keeps the way per sample, for SGD (arXiv:1706.02677, with a warm-up); "sqrt" keeps the
    variance of a step, and is the usual choice for Adam; "keep" takes fewer steps of the same size.
    They are rules of thumb: beyond some batch none of them holds.
    """
    ratio = global_batch / base_batch
    return base_rate * {"linear": ratio, "sqrt": sqrt(ratio), "keep": 1.0}[rule]
