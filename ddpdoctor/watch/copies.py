"""Records copies of a model: one made before the wrap is not what DDP then makes equal.

A copy of a module is seen when it is made. One of its tensors alone (an average that is kept in a
dictionary) calls nothing that can be watched: those are looked for on a rank whose weights DDP has
replaced by those of rank 0, and are told once they have changed, as an average does.
"""

from __future__ import annotations

import copy
import functools
import gc
import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ddpdoctor.watch.aside import is_compiling
from ddpdoctor.watch.digests import digests
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, as_frame, is_users, outwards, users_frame

_PLACES = 3
_MOST, _SMALL = 2048, 8
"""So many parameters are compared, of so many elements or more."""


@dataclass
class _Copy:
    copy: weakref.ref[Any]
    source: weakref.ref[Any]
    places: list[Frame]
    wrapper: weakref.ref[Any] | None = None


@dataclass
class _Kept:
    """Tensors that hold what a parameter held before the wrap, by its name."""

    wrapper: weakref.ref[Any]
    tensors: dict[str, weakref.ref[Any]]
    digests: dict[str, str]
    place: Frame | None
    has_begun: bool = False
    """A step was taken since."""


class Copies:
    """The copies of modules that were made so far, and what they are copies of."""

    def __init__(self) -> None:
        self._made: list[_Copy] = []
        self._kept: list[_Kept] = []

    @harmless
    def made(self, source: Any, result: Any) -> None:
        """A module has been copied."""
        places = [as_frame(f) for f in outwards(sys._getframe(1)) if is_users(f.f_code)]
        made = _Copy(weakref.ref(result), weakref.ref(source), places[:_PLACES])
        alive = [each for each in self._made if each.copy() is not None]
        self._made = [*alive[-64:], made]

    @harmless
    def wrapped(self, wrapper: Any, before: Mapping[str, str]) -> None:
        """A DDP was built: the copies of its module that are there already are what matters.

        `before` are the digests of what its parameters held.
        """
        for each in self._made:
            if each.wrapper is None and each.source() is wrapper.module:
                each.wrapper = weakref.ref(wrapper)
        now = held(wrapper.module) or {}
        replaced = {name: was for name, was in before.items() if now.get(name, was) != was}
        if replaced and (tensors := dict(_equal(wrapper.module, replaced))):
            kept = _Kept(weakref.ref(wrapper), tensors, replaced, users_frame())
            self._kept.append(kept)

    @harmless
    def write(self, log: Log, wrapper: Any, number: int) -> None:
        """Write, once, the digests of the copies that were made before this wrapper."""
        mine = [each for each in self._made if each.wrapper and each.wrapper() is wrapper]
        self._made = [each for each in self._made if each not in mine]
        for each in mine:
            if (made := each.copy()) is not None:
                parameters = digests(dict(made.named_parameters()))
                log.write("copy", wrapper=number, places=each.places, parameters=parameters)
        for kept in [each for each in self._kept if each.wrapper() is wrapper]:
            self._follow(log, wrapper, number, kept)

    def _follow(self, log: Log, wrapper: Any, number: int, kept: _Kept) -> None:
        """Before the first step they must be as they were; later, neither so nor as the model."""
        alive = {n: tensor for n, of in kept.tensors.items() if (tensor := of()) is not None}
        now, model = digests(alive), held(wrapper.module) or {}
        changed = [name for name, digest in now.items() if digest != kept.digests[name]]
        if not now or (changed and not kept.has_begun):
            self._kept.remove(kept)
        elif apart := [name for name in changed if now[name] != model.get(name)]:
            self._kept.remove(kept)
            log.write("kept", wrapper=number, names=apart, place=kept.place)
        kept.has_begun = True


@harmless
def held(module: Any) -> dict[str, str]:
    """Digests of what the parameters of a module hold."""
    named = list(module.named_parameters())[:_MOST]
    return digests({name: p for name, p in named if p.numel() >= _SMALL})


def _equal(module: Any, was: Mapping[str, str]) -> Iterator[tuple[str, weakref.ref[Any]]]:
    """Tensors of the process that hold what a parameter of this shape held."""
    import torch

    wanted: dict[Any, list[str]] = {}
    for name, parameter in module.named_parameters():
        if name in was:
            wanted.setdefault((parameter.shape, parameter.dtype), []).append(name)
    for each in gc.get_objects():
        if type(each) is torch.Tensor and (names := wanted.get((each.shape, each.dtype))):
            digest = digests({"": each}).get("")
            yield from ((name, weakref.ref(each)) for name in names if was[name] == digest)


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
