"""Records the first random orders that a script makes, by which data is shuffled and split.

By the functions of random, numpy and torch, and by a `random.Random` of the script's own. What a
Generator of numpy's does cannot be watched: told is where one is made.

What matters is from which state of a generator they come: ranks whose states differ make orders of
their own.
"""

from __future__ import annotations

import functools
import sys
import zlib
from collections import Counter
from types import FrameType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, is_users, users_frame

_MOST = 32
_LOOKS, _TIMES = 256, 16
"""Draws that are looked at in the training too, and of each line: who draws for each sample makes
no order."""
_NUMBERS = 20_000
_MIXED = 4
"""Shuffles of one pass that are noted."""
_AMID = 4096
"""Draws amid the passes that are looked at: who draws for each sample begins no order again."""
_SHORT = 4
"""A shorter list is no dataset."""


def install(log: Log) -> None:
    """Wrap what shuffles, samples and permutes, in random, numpy and torch."""
    import random

    import torch
    from torch.utils.data import dataset

    shuffles = _Shuffles(log)
    for name in ("shuffle", "sample"):
        shuffles.wrap(random, name, "random")
        shuffles.wrap(random.Random, name, "random.Random")
    if (numpy := sys.modules.get("numpy")) is not None:
        for name in ("shuffle", "permutation", "choice"):
            shuffles.wrap(numpy.random, name, "numpy.random")
        shuffles.wrap_maker(numpy.random, "default_rng")
    shuffles.wrap(torch, "randperm", "torch")
    splits: Any = dataset
    if splits.randperm is not torch.randperm:  # random_split knows it by this name
        shuffles.wrap(splits, "randperm", "torch")


class _Shuffles:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._written = self._looks = self._amid = 0
        self._lines: Counter[Frame] = Counter()

    def wrap(self, module: Any, name: str, library: str) -> None:
        original = getattr(module, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._written < _MOST and not self._log.steps:
                self._note(library, name, args, kwargs)
            if self._looks < _LOOKS:
                self._looks += 1
                self._note_again(library, args, kwargs)
            if self._log.mixed is not None:
                self._mixes(library, args, kwargs)
            elif self._log.dealing and self._amid < _AMID:
                self._amid += 1
                self._mixes_again(library, args, kwargs)
            return original(*args, **kwargs)

        setattr(module, name, call)

    def wrap_maker(self, module: Any, name: str) -> None:
        """Of generators that the script makes for itself."""
        original = getattr(module, name)

        @functools.wraps(original)
        def make(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if self._written < _MOST and not self._log.steps:
                self._note_made(f"{module.__name__}.{name}", made)
            return made

        setattr(module, name, make)

    @harmless
    def _note_made(self, by: str, generator: Any) -> None:
        caller = sys._getframe(3)
        if not is_users(caller.f_code):  # libraries make theirs as they are imported
            return
        self._written += 1
        place = users_frame(caller)
        state = f"{zlib.crc32(repr(generator.bit_generator.state).encode()):x}"
        way = self._log.way(caller)
        self._log.write("shuffled", by=by, length=0, state=state, place=place, way=way)

    @harmless
    def _note_again(self, library: str, args: Any, kwargs: Any) -> None:
        """A draw from a generator that others use too, be it before the training or in it."""
        own = library == "random.Random" or kwargs.get("generator") is not None
        caller = sys._getframe(3)
        if own or _is_torch(caller) or (place := users_frame(caller)) is None:
            return
        self._lines[place] += 1
        if self._lines[place] > _TIMES:
            return
        self._log.write(
            "reordered",
            by=library,
            content=_numbers(args[0]) if args else "",
            state=_state(library, kwargs),
            step=self._log.steps,
            place=place,
            way=self._log.way(caller),
        )

    @harmless
    def _mixes(self, library: str, args: Any, kwargs: Any) -> None:
        """A sampler or the like shuffles for the pass that begins."""
        if self._log.mixed is not None and len(self._log.mixed) < _MIXED:
            self._log.mixed.append((_from(library, args, kwargs), users_frame(sys._getframe(3))))

    @harmless
    def _mixes_again(self, library: str, args: Any, kwargs: Any) -> None:
        """What was gone through within a pass may be gone through once more."""
        caller = sys._getframe(3)
        if (place := users_frame(caller)) in self._log.dealing:
            state = _from(library, args, kwargs)
            self._log.remixed = state, place, self._log.way(caller)

    @harmless
    def _note(self, library: str, name: str, args: Any, kwargs: Any) -> None:
        own, by = None, f"{library}.{name}"
        if library == "random.Random":
            own, *args = args
        first = args[0]
        length = first if isinstance(first, int) else len(first)
        caller = sys._getframe(3)
        place = users_frame(caller)
        if length < _SHORT or place is None or _is_torch(caller):
            return
        self._written += 1
        state = _state(library, kwargs) if own is None else _of_random(own)
        way = self._log.way(caller)
        self._log.write("shuffled", by=by, length=length, state=state, place=place, way=way)


def _numbers(given: Any) -> str:
    """How many there are, or which: what holds anything else is not told."""
    if isinstance(given, int):
        return str(given)
    few = isinstance(given, list) and len(given) <= _NUMBERS
    return f"{hash(tuple(given)):x}" if few and all(type(each) is int for each in given) else ""


def _is_torch(caller: FrameType) -> bool:
    """Whether a sampler of torch's own asks: what it deals out is known otherwise."""
    file = caller.f_code.co_filename
    return "/torch/utils/data/" in file and "dataset.py" not in file


def _from(library: str, args: Any, kwargs: Any) -> str:
    """The state of the generator that is shuffled by, be it one of the script's own."""
    return _of_random(args[0]) if library == "random.Random" else _state(library, kwargs)


def _state(library: str, kwargs: Any) -> str:
    if library == "random":
        return _of_random(sys.modules["random"])
    if library == "numpy.random":
        _, words, at, *_ = sys.modules["numpy"].random.get_state()
        return f"{zlib.crc32(words.tobytes()):x} {at}"
    torch: Any = sys.modules["torch"]
    generator = kwargs.get("generator")
    state = generator.get_state() if generator is not None else torch.get_rng_state()
    return f"{zlib.crc32(state.numpy().tobytes()):x}"


def _of_random(generator: Any) -> str:
    return f"{hash(generator.getstate()[1]) & 0xFFFF_FFFF:x}"
