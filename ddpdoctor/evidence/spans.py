"""Many ranks in few words: each rank of a world tells all of the world, and of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_FEW = 8


def spans(ranks: Sequence[int]) -> list[int] | dict[str, int]:
    """The ranks as they are written down: as a list, or, if they are many and evenly apart, so."""
    if len(ranks) > _FEW:
        step = ranks[1] - ranks[0]
        if step > 0 and list(ranks) == list(range(ranks[0], ranks[-1] + 1, step)):
            return {"first": ranks[0], "last": ranks[-1], "step": step}
    return list(ranks)


def fits(said: Any, world_size: int) -> bool:
    """Whether these are ranks of a world of this size. Raises what is in DAMAGED."""
    if isinstance(said, dict):
        return bool(0 <= said["first"] <= said["last"] < world_size and said["step"] > 0)
    return all(0 <= member < world_size for member in said)
