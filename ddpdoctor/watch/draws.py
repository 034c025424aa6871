"""Records what the training code draws from random generators, in a few windows between steps.

For the length of such a window the functions that draw are replaced. Of each draw the line, the
shape, and the state of the generator before it are written; who draws the same on every rank from
one state draws the same numbers.
"""

from __future__ import annotations

import sys
import weakref
import zlib
from collections.abc import Callable
from types import FrameType
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame
from ddpdoctor.watch.replacing import Replaced

_OF_TORCH = ("randn", "rand", "randint", "randn_like", "rand_like", "randint_like", "normal")
_OF_TENSOR = ("normal_", "uniform_", "random_")
_OF_NUMPY = ("randn", "rand", "normal", "uniform", "randint", "random", "standard_normal")
_WHOLE = ("randint", "randint_like", "random_")
_MOST, _OF_LINE = 16, 4
"""Draws that are written of one window, and of one line in it.

Single numbers are not: a transform draws many for each sample, and they are no rows of a batch.
"""


class Draws:
    """The draws of the window that is open, if one is."""

    def __init__(self, log: Log, inside: Callable[[], bool]) -> None:
        self._log, self._inside = log, inside
        """`inside`: whether a forward pass of a wrapper is under way."""
        self._rows: int | None = None
        """Samples that the model was given in this window."""
        self._exchanged = 0
        """Numbers that had been exchanged when the window was opened."""
        self._drawn: list[dict[str, Any]] = []
        self._lines: dict[tuple[int, int], int] = {}
        """By code and instruction: how often it drew in this window."""
        self._fresh: list[tuple[dict[str, Any], weakref.ref[Any]]] = []
        """Those drawn since the model was last given samples."""

    def listen(self, replaced: Replaced) -> None:
        """A window begins."""
        import torch

        self._rows, self._exchanged = None, self._log.exchanged
        self._drawn, self._lines, self._fresh = [], {}, []
        for name in _OF_TORCH:
            replaced.put(torch, name, self._listening(name, torch))
        for name in _OF_TENSOR:
            replaced.put(torch.Tensor, name, self._listening(name, torch))
        if (numpy := sys.modules.get("numpy")) is not None:
            for name in _OF_NUMPY:
                replaced.put(numpy.random, name, self._listening(name, numpy))

    def fed(self, rows: int | None, given: list[Any]) -> None:
        """The model is given so many samples: what was drawn for them is held, or was used up.

        Whole numbers that the model is not given itself, as time steps are, choose samples.
        """
        self._rows = rows
        for drawn, reference in self._fresh:
            numbers = reference()
            chooses = drawn["by"] in _WHOLE and not any(each is numbers for each in given)
            drawn["kept"] = numbers is not None and not chooses
        self._fresh.clear()

    def write(self, step: int) -> None:
        """What was drawn."""
        if self._drawn:
            exchanged = self._log.exchanged - self._exchanged
            self._log.write(
                "draws", step=step, rows=self._rows, exchanged=exchanged, drawn=self._drawn
            )

    def _listening(self, name: str, library: Any) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def draw(*args: Any, **kwargs: Any) -> Any:
                frame = sys._getframe(2)  # beyond what was put in place
                is_looked_at = self._looks_at(frame)
                before = _state(library, args, kwargs) if is_looked_at else None
                result = original(*args, **kwargs)
                if before is not None and (place := users_frame(frame)) is not None:
                    self._note(place, name, result, before, frame)
                return result

            return draw

        return make

    @harmless
    def _looks_at(self, frame: FrameType) -> bool:
        line = id(frame.f_code), frame.f_lasti
        self._lines[line] = often = self._lines.get(line, 0) + 1
        return often <= _OF_LINE and len(self._drawn) < _MOST

    @harmless
    def _note(self, place: Frame, name: str, result: Any, state: str, frame: FrameType) -> None:
        shape = list(getattr(result, "shape", ()))
        if not shape or shape[0] < 2:
            self._lines[id(frame.f_code), frame.f_lasti] = _OF_LINE
            return
        drawn = {
            "place": place,
            "by": name,
            "shape": shape,
            "state": state,
            "inside": bool(self._inside()),
        }
        self._drawn.append(drawn)
        if not drawn["inside"]:
            self._fresh.append((drawn, weakref.ref(result)))


@harmless
def _state(library: Any, args: Any, kwargs: Any) -> str:
    """Digest of the state of the generator that will be drawn from; it is not advanced."""
    if library.__name__ == "numpy":
        _, words, at, *_ = library.random.get_state()
        return f"numpy {zlib.crc32(words.tobytes()):x} {at}"
    generator = kwargs.get("generator")
    if generator is not None:
        return f"own {zlib.crc32(generator.get_state().numpy().tobytes()):x}"
    device = kwargs.get("device")
    given = args[0] if args and hasattr(args[0], "device") else None
    on = library.device(device) if device is not None else getattr(given, "device", None)
    if on is not None and on.type == "cuda":
        return f"cuda {zlib.crc32(library.cuda.get_rng_state(on).numpy().tobytes()):x}"
    return f"cpu {zlib.crc32(library.get_rng_state().numpy().tobytes()):x}"
