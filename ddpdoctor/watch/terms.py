"""Of how many terms a number is a mean, by what the functions hold that have made it.

Values decide: a tensor or a list whose mean it is, or a sum and a whole number (or a length) whose
quotient it is, among the locals of the calling functions and the attributes of what these hold.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.places import is_users, outwards

_FRAMES, _VALUES, _ATTRIBUTES = 2, 64, 32
_NUMBERS, _LONGEST = 32, 10_000
_ELEMENTS = 200_000
_CLOSE = 1e-6


@harmless
def terms(mean: Any) -> int:
    """How many, for a small tensor on the CPU; 0 where that does not show."""
    import torch

    frames = [each for each in outwards(sys._getframe(1)) if is_users(each.f_code)][:_FRAMES]
    number = float(mean) if mean.numel() == 1 else math.nan
    if number in (0.0, 1.0):
        return 0  # of so many things
    numbers: list[float] = []
    lengths: list[float] = []
    with torch.no_grad():
        for value in (value for frame in frames for value in _values(frame)):
            if value is mean:
                continue
            if isinstance(value, torch.Tensor) and value.dim():
                if _is_mean(mean, value):
                    return len(value) if mean.dim() and len(mean) > 1 else value.numel()
                lengths.append(len(value))
            elif isinstance(value, list) and 1 < len(value) <= _LONGEST:
                if _is_close(sum(map(_plain, value)) / len(value), number):
                    return len(value)
            elif len(numbers) < _NUMBERS and not math.isnan(plain := _plain(value)):
                numbers.append(plain)
    for count in (*numbers, *lengths):
        if (
            count >= 2
            and count == int(count)
            and any(_is_close(n / count, number) for n in numbers)
        ):
            return int(count)
    return 0


def _values(frame: FrameType) -> Iterator[Any]:
    """What a function holds, and what is held by the objects that it holds."""
    for value in [*frame.f_locals.values()][:_VALUES]:
        yield value
        if type(value).__module__.partition(".")[0] not in ("torch", "numpy", "builtins"):
            yield from [*getattr(value, "__dict__", {}).values()][:_ATTRIBUTES]


def _plain(value: Any) -> float:
    """A number, or a tensor that holds one; else nan."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    # By its class: a user's object may raise from any attribute.
    is_tensor = isinstance(value, sys.modules["torch"].Tensor)
    is_one = is_tensor and not value.dim() and value.device.type == "cpu"
    return float(value) if is_one else math.nan


def _is_mean(mean: Any, values: Any) -> bool:
    if values.device.type != "cpu" or not 1 < values.numel() <= _ELEMENTS:
        return False
    values = values.detach() if values.is_floating_point() else values.float()
    if mean.numel() == 1:
        return _is_close(float(values.mean()), float(mean))
    return bool(values.shape[1:] == mean.shape and values.mean(0).allclose(mean, rtol=_CLOSE))


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_CLOSE)
