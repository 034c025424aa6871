"""The environment variables that bear on distributed training: who reads them, and as what.

Adding a variable is adding a line to `launch`, `pytorch` or `nccl`; the checks pick it up.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from ddpdoctor.environment.variables import launch, nccl, pytorch
from ddpdoctor.environment.variables.table import Kind, Status, Variable

__all__ = ["Kind", "Status", "Variable", "for_nccl", "known", "nearest", "of_a_family"]

# A misspelt name in one of these families is worth a word even if it resembles none of ours.
_FAMILIES = (
    "NCCL_",
    "TORCH_NCCL_",
    "TORCH_FR_",
    "TORCH_GLOO_",
    "TORCH_DIST_",
    "TORCH_DISTRIBUTED_",
    "TORCHELASTIC_",
    "GLOO_",
    "PET_",
)
# From this length on, two wrong letters still leave no doubt which name was meant.
_LONG_NAME = 12
_SHORT_NAME = 8
_OF_NCCL = re.compile("NCCL_[A-Z0-9_]+")


@cache
def known() -> dict[str, Variable]:
    """The whole table, by name."""
    rows = (*launch.VARIABLES, *pytorch.VARIABLES, *nccl.VARIABLES)
    return {row.name: row for row in rows}


def of_a_family(name: str) -> bool:
    """Whether only PyTorch, gloo, NCCL or torchrun would have a variable of such a name."""
    return name.startswith(_FAMILIES)


def for_nccl(name: str) -> bool:
    """Whether NCCL reads it, or somebody thought so."""
    reader = known()[name].read_by if name in known() else "NCCL"
    return _OF_NCCL.fullmatch(name) is not None and reader in ("NCCL", "nothing")


@lru_cache(maxsize=1024)
def nearest(name: str) -> str | None:
    """The variable that was probably meant by a name that is in no table; None if none is near.

    One edit for short names and two for long ones: an insertion, a deletion, another letter, or
    two neighbours that changed places.
    """
    if len(name) < _SHORT_NAME or name in known():
        return None
    allowed = 2 if len(name) >= _LONG_NAME else 1
    near = (
        (distance, candidate)
        for candidate in _worth_meaning()
        if abs(len(candidate) - len(name)) <= allowed
        and (distance := _edits(name, candidate, allowed)) <= allowed
    )
    return min(near, default=(0, None))[1]


@cache
def _worth_meaning() -> tuple[str, ...]:
    return tuple(
        row.name
        for row in known().values()
        if row.status in ("known", "debug", "legacy") and not row.ordinary_name
    )


def _edits(a: str, b: str, most: int) -> int:
    """Optimal string alignment distance; anything above `most` where it is more than that."""
    before_last: list[int] = []
    last = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > most <= min(last):
            return most + 1
        before_last, last = last, row
    return last[-1]
