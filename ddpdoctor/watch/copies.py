"""Records copies of a model: one made before the wrap is not what DDP then makes equal.

Also averages whose decay is held by a closure, where an attribute of the same name says another.
"""

from __future__ import annotations

import copy
import functools
import sys
import weakref
from dataclasses import dataclass
from typing import Any

from ddpdoctor.watch.aside import is_compiling
from ddpdoctor.watch.digests import digests
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, as_frame, is_users, outwards

_PLACES = 3


@dataclass
class _Copy:
    copy: weakref.ref[Any]
    source: weakref.ref[Any]
    places: list[Frame]
    wrapper: weakref.ref[Any] | None = None


class Copies:
    """The copies of modules that were made so far, and what they are copies of."""

    def __init__(self) -> None:
        self._made: list[_Copy] = []

    @harmless
    def made(self, source: Any, result: Any) -> None:
        """A module has been copied."""
        places = [as_frame(f) for f in outwards(sys._getframe(1)) if is_users(f.f_code)]
        made = _Copy(weakref.ref(result), weakref.ref(source), places[:_PLACES])
        alive = [each for each in self._made if each.copy() is not None]
        self._made = [*alive[-64:], made]

    @harmless
    def wrapped(self, wrapper: Any) -> None:
        """A DDP was built: the copies of its module that are there already are what matters."""
        for each in self._made:
            if each.wrapper is None and each.source() is wrapper.module:
                each.wrapper = weakref.ref(wrapper)

    @harmless
    def write(self, log: Log, wrapper: Any, number: int) -> None:
        """Write, once, the digests of the copies that were made before this wrapper."""
        mine = [each for each in self._made if each.wrapper and each.wrapper() is wrapper]
        self._made = [each for each in self._made if each not in mine]
        for each in mine:
            if (made := each.copy()) is not None:
                parameters = digests(dict(made.named_parameters()))
                log.write("copy", wrapper=number, places=each.places, parameters=parameters)


def install() -> Copies:
    """Listen to copies of modules."""
    from torch import nn
    from torch.optim import swa_utils

    copies = Copies()
    original = copy.deepcopy

    @functools.wraps(original)
    def deepcopy(x: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(x, *args, **kwargs)
        if isinstance(x, nn.Module) and not is_compiling():
            copies.made(x, result)
        return result

    copy.deepcopy = deepcopy
    swa_utils.deepcopy = deepcopy  # type: ignore[attr-defined]
    return copies
