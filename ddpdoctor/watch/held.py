"""Whether what is summed over the ranks is a loss, or an average of numbers.

By what the lines that call hold just then.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from ddpdoctor.watch.averages import Average
from ddpdoctor.watch.factors import factors
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.labels import variables
from ddpdoctor.watch.places import is_users, outwards

_FRAMES, _MOST, _NUMBERS = 3, 4, 64
_LONGEST, _FEATURES = 4096, 64
_ROUNDING = 1e-6


@harmless
def losses(summed: Any, given: float) -> list[float]:
    """The losses that the user's innermost frames hold, of those that are a mean and no more.

    None where what is summed is one that is made smaller, as for several passes before a step: not
    one that a function has made for this sum alone.
    """
    found: dict[int, float] = {}
    asked = 0
    for depth, frame in enumerate(_frames()):
        for value in variables(frame).values():
            if getattr(value, "grad_fn", None) is None or id(value) in found:
                continue
            asked += 1
            if value.numel() != 1 or value.device.type != "cpu" or asked > _NUMBERS:
                continue
            number = float(value.detach())
            if factors(value) == [1.0]:
                found[id(value)] = number
            elif number == given and (depth or value is not summed or _is_alone(frame)):
                return []
    return list(found.values())[:_MOST]


@harmless
def averages(values: list[float]) -> list[Average] | None:
    """By each number what it is if these frames hold numbers of which it is the average; else 0."""
    held = (value for frame in _frames() for value in variables(frame).values())
    known = [
        (math.fsum(row) / len(row), len(row))
        for value in itertools.islice(held, _NUMBERS)
        for row in (_numbers(value), *_columns(value))
        if row and min(row) < max(row)
    ]
    found = [_only([each for each in known if _is(each[0], value)]) for value in values]
    return found if any(mean for mean, _ in found) else None


def _only(found: list[Average]) -> Average:
    """The first, and of how many numbers it is where that is not doubtful."""
    counts = {count for _, count in found}
    return (found[0][0], counts.pop() if len(counts) == 1 else 0) if found else (0.0, 0)


def _numbers(value: Any) -> Sequence[float]:
    """Several numbers in a row, in a list or an array; nothing else."""
    if isinstance(value, (list, tuple)):
        if not 1 < len(value) <= _LONGEST:
            return ()
        row = [*_single(value)]
        return row if len(row) == len(value) else ()
    if not _is_plain(value) or len(value.shape) != 1 or value.shape[0] < 2:
        return ()
    row = value.tolist()
    return row if type(row[0]) is float else ()


def _columns(value: Any) -> list[list[float]]:
    """The numbers of each feature, where the last of several dimensions are these."""
    if not _is_plain(value) or len(value.shape) < 2 or not 0 < value.shape[-1] <= _FEATURES:
        return []
    columns = value.reshape(-1, value.shape[-1]).T.tolist()
    return columns if type(columns[0][0]) is float else []


def _is_plain(value: Any) -> bool:
    """Whether it is an array, or a tensor on the CPU and without a graph, that is not too large.

    No other kind of tensor: one that is dealt out over the ranks would ask these.
    """
    kind = type(value)
    is_array = (kind.__module__, kind.__name__) == ("numpy", "ndarray")
    if not is_array and (kind.__module__, kind.__name__) != ("torch", "Tensor"):
        return False
    is_near = is_array or (value.device.type == "cpu" and not value.requires_grad)
    return is_near and 0 < math.prod(value.shape) <= _LONGEST


def _single(values: Sequence[Any]) -> Iterator[float]:
    """Of each that is a number, or holds one that no GPU is to be asked for."""
    for value in values:
        if type(value) in (int, float):
            yield value
        elif type(value).__module__ == "numpy" or _is_plain(value):
            number = value.tolist()
            if type(number) in (int, float):
                yield number


def _is(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDING)


def _frames() -> Iterator[FrameType]:
    """The user's innermost."""
    users = (each for each in outwards(sys._getframe(2)) if is_users(each.f_code))
    return itertools.islice(users, _FRAMES)


def _is_alone(frame: FrameType) -> bool:
    """Whether no function of the user's has called this one."""
    return not any(is_users(each.f_code) for each in outwards(frame.f_back))
