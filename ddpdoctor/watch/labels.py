"""Records what the rows of a reduction stand for: names and keys of the code that calls it.

Of the first calls of each line: words that the user's two innermost frames hold, as the name in
`for name in metrics:`, and the keys of a dictionary whose values are what the tensor holds, in the
dictionary's order.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.places import is_users, outwards

FIRST = 16
"""Calls of each line that are looked at."""
_REDUCED = frozenset({"all_reduce", "reduce", "reduce_scatter"})
_FRAMES, _WORDS, _LONGEST, _KEYS = 2, 8, 64, 64
_ROUNDING = 1e-6


@harmless
def facts(op: str, args: tuple[Any, ...], steps: int) -> dict[str, Any]:
    """The fields of `evidence.Collective` that name what is reduced."""
    tensor = args[0][0] if args and isinstance(args[0], list) and args[0] else None
    if op not in _REDUCED or tensor is None:
        return {}
    frames = [f for f in outwards(sys._getframe(1)) if is_users(f.f_code)][:_FRAMES]
    found = list(itertools.islice(_words(frames), _WORDS))
    if tensor.device.type == "cpu" and 2 <= tensor.numel() <= _KEYS * 4:
        found += _keys(frames[0], tensor.detach().reshape(-1).tolist())
    return {"labels": found, "step": steps} if found else {}


def _words(frames: list[Any]) -> Iterator[list[str]]:
    for frame in frames:
        for name, value in frame.f_locals.items():
            if type(value) is str and 0 < len(value) <= _LONGEST:
                yield [f"{frame.f_code.co_qualname}.{name}", value]


def _keys(frame: Any, numbers: list[float]) -> list[list[str]]:
    """Those of the first dictionary, of a variable or of the object itself, with these values."""
    variables = frame.f_locals
    itself = variables.get(next(iter(frame.f_code.co_varnames), ""))
    for name, value in [*variables.items(), *getattr(itself, "__dict__", {}).items()]:
        if isinstance(value, dict) and 2 <= len(value) <= _KEYS and len(numbers) % len(value) == 0:
            if not all(type(key) in (str, int) for key in value):
                continue
            rows = harmless(_rows)(value)
            wide = len(numbers) // len(value)
            if rows and all(len(row) == wide for row in rows) and len(set(rows)) == len(rows):
                flat = [number for row in rows for number in row]
                if all(map(_is_near, flat, numbers)):
                    return [[f"{frame.f_code.co_qualname}.{name}[]", *map(str, value)]]
    return []


def _rows(held: dict[Any, Any]) -> list[tuple[float, ...]]:
    """The numbers of each value; empty if a value is of anything else."""
    rows: list[tuple[float, ...]] = []
    for value in held.values():
        if hasattr(value, "reshape") and hasattr(value, "tolist"):
            if value.numel() > _KEYS or value.device.type != "cpu":
                return []
            row = tuple(value.detach().reshape(-1).tolist())
        else:
            row = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if not all(type(number) in (int, float) for number in row):
            return []
        rows.append(row)
    return rows


def _is_near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDING)
