"""Whether what is summed over the ranks is a loss: by what the lines that call hold just then."""

from __future__ import annotations

import itertools
import sys
from types import FrameType
from typing import Any

from ddpdoctor.watch.factors import factors
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.labels import variables
from ddpdoctor.watch.places import is_users, outwards

_FRAMES, _MOST, _NUMBERS = 3, 4, 64


@harmless
def losses(summed: Any, given: float) -> list[float]:
    """The losses that the user's innermost frames hold, of those that are a mean and no more.

    None where what is summed is one that is made smaller, as for several passes before a step: not
    one that a function has made for this sum alone.
    """
    frames = (each for each in outwards(sys._getframe(1)) if is_users(each.f_code))
    found: dict[int, float] = {}
    asked = 0
    for depth, frame in enumerate(itertools.islice(frames, _FRAMES)):
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


def _is_alone(frame: FrameType) -> bool:
    """Whether no function of the user's has called this one."""
    return not any(is_users(each.f_code) for each in outwards(frame.f_back))
