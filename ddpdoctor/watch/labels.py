"""Records what the rows of a reduction stand for: names and keys of the code that calls it.

Of the first calls of each line: words that the user's two innermost frames hold, as the name in
`for name in metrics:`, and the keys of a dictionary whose values are what the tensor holds, in the
dictionary's order. Of what is gathered the words alone.
"""

from __future__ import annotations

import inspect
import itertools
import math
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.places import is_users, outwards

FIRST = 64
"""Calls of each line that are looked at."""
_REDUCED = frozenset({"all_reduce", "reduce", "reduce_scatter"})
_GATHERED = "all_gather"
_FRAMES, _WORDS, _LONGEST, _KEYS = 2, 8, 64, 64
_ROUNDING = 1e-6
_LOOKING = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Names of functions by which code looks at its own variables."""


@harmless
def facts(op: str, args: tuple[Any, ...], steps: int) -> dict[str, Any]:
    """The fields of `evidence.Collective` that name what is reduced."""
    tensor = args[0][0] if args and isinstance(args[0], list) and args[0] else None
    if op not in (*_REDUCED, _GATHERED) or tensor is None:
        return {}
    frames = itertools.islice(
        (f for f in outwards(sys._getframe(1)) if is_users(f.f_code)), _FRAMES
    )
    seen = [(each.f_code, variables(each)) for each in frames]
    found = list(itertools.islice(_words(seen), _WORDS))
    if op in _REDUCED and tensor.device.type == "cpu" and 2 <= tensor.numel() <= _KEYS * 4:
        numbers = tensor.detach().reshape(-1).tolist()
        found += next(filter(None, (_keys(*each, numbers) for each in seen)), [])
    return {"labels": found, "step": steps} if found else {}


def variables(frame: FrameType) -> dict[str, Any]:
    """What it holds now, by name; nothing where to look would leave a trace.

    Up to Python 3.12 a frame keeps what was read of it, and all that it held with that, in the one
    dictionary that it gives to `locals()`, and to a debugger.
    """
    code = frame.f_code
    if sys.version_info >= (3, 13) or not code.co_flags & inspect.CO_OPTIMIZED:
        return dict(frame.f_locals)
    if sys.gettrace() is not None or not _LOOKING.isdisjoint(code.co_names):
        return {}
    kept = frame.f_locals
    found = dict(kept)
    kept.clear()
    return found


def _words(seen: list[tuple[CodeType, dict[str, Any]]]) -> Iterator[list[str]]:
    for code, variables in seen:
        for name, value in variables.items():
            if type(value) is str and 0 < len(value) <= _LONGEST:
                yield [f"{code.co_qualname}.{name}", value]


def _keys(code: CodeType, variables: dict[str, Any], numbers: list[float]) -> list[list[str]]:
    """Those of the first dictionary, of a variable or of the object itself, with these values."""
    itself = variables.get(next(iter(code.co_varnames), ""))
    for name, value in [*variables.items(), *getattr(itself, "__dict__", {}).items()]:
        if isinstance(value, dict) and 2 <= len(value) <= _KEYS and len(numbers) % len(value) == 0:
            if not all(type(key) in (str, int) for key in value):
                continue
            rows = harmless(_rows)(value)
            wide = len(numbers) // len(value)
            if rows and all(len(row) == wide for row in rows) and len(set(rows)) == len(rows):
                flat = [number for row in rows for number in row]
                if all(map(_is_near, flat, numbers)):
                    return [[f"{code.co_qualname}.{name}[]", *map(str, value)]]
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
