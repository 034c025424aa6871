"""Many ranks in few words: each rank of a world tells all of the world, and of each group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_FEW = 8
_MOST_RUNS = 12


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


def named(ranks: Iterable[int]) -> str:
    """For people: "rank 0", "ranks 1, 2", "ranks 1, 4-7"; of many runs the first are told."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    told = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    rest = sum(map(len, runs[_MOST_RUNS:]))
    more = f" and {rest} more" if rest else ""
    many = sum(map(len, runs)) > 1
    return f"rank{'s' if many else ''} {', '.join(told[:_MOST_RUNS])}{more}"
