"""Records what the training code draws from random generators, in a few windows between steps.

For the length of such a window the functions that draw are listened to, by replacing them: in all
the others nothing is. Of each draw the line, the shape, and the state of the generator before it
are written; who draws the same on every rank from one state draws the same numbers.
"""

from __future__ import annotations

import sys
import weakref
import zlib
from collections.abc import Callable
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame
from ddpdoctor.watch.replacing import Replaced, compiles

_OF_TORCH = ("randn", "rand", "randint", "randn_like", "rand_like", "randint_like", "normal")
_OF_TENSOR = ("normal_", "uniform_", "random_")
_OF_NUMPY = ("randn", "rand", "normal", "uniform", "randint", "random", "standard_normal")
_MOST = 16
"""Draws that are written of one window."""
_LAST = 64
"""No window begins after this step."""


class Draws:
    """The draws of the window that is open, if one is."""

    def __init__(self, log: Log) -> None:
        self.rows: int | None = None
        """Samples that the model was given in this window."""
        self.is_open = False
        self.inside: Callable[[], bool] = lambda: False
        """Whether a forward pass of a wrapper is under way."""
        self._log = log
        self._exchanged = 0
        """Numbers that had been exchanged when the window was opened."""
        self._drawn: list[dict[str, Any]] = []
        self._fresh: list[tuple[dict[str, Any], weakref.ref[Any]]] = []
        """Those drawn since the model was last given samples."""
        self._replaced = Replaced()

    @harmless
    def open(self, step: int) -> None:
        """Listen until `close`, which comes before this step."""
        import torch

        if self.is_open or step > _LAST or compiles():
            return
        self.is_open, self.rows, self._exchanged = True, None, self._log.exchanged
        for name in _OF_TORCH:
            self._replace(torch, name, torch)
        for name in _OF_TENSOR:
            self._replace(torch.Tensor, name, torch)
        if (numpy := sys.modules.get("numpy")) is not None:
            for name in _OF_NUMPY:
                self._replace(numpy.random, name, numpy)

    @harmless
    def fed(self, rows: int | None) -> None:
        """The model is given so many samples: what was drawn for them is held, or was used up."""
        self.rows = rows
        for drawn, numbers in self._fresh:
            drawn["kept"] = numbers() is not None
        self._fresh.clear()

    @harmless
    def close(self, step: int) -> None:
        """Write what was drawn, and listen no more."""
        if not self.is_open:
            return
        self.is_open = False
        self._replaced.undo()
        drawn, self._drawn = self._drawn, []
        self._fresh.clear()
        if drawn:
            exchanged = self._log.exchanged - self._exchanged
            self._log.write("draws", step=step, rows=self.rows, exchanged=exchanged, drawn=drawn)

    def _replace(self, holder: Any, name: str, library: Any) -> None:
        def make(original: Any) -> Any:
            def draw(*args: Any, **kwargs: Any) -> Any:
                before = _state(library, args, kwargs) if len(self._drawn) < _MOST else None
                result = original(*args, **kwargs)
                if before is not None and (place := users_frame(sys._getframe(1))) is not None:
                    self._note(place, name, result, before)
                return result

            return draw

        self._replaced.put(holder, name, make)

    @harmless
    def _note(self, place: Frame, name: str, result: Any, state: str) -> None:
        drawn = {
            "place": place,
            "by": name,
            "shape": list(getattr(result, "shape", ())),
            "state": state,
            "inside": bool(self.inside()),
        }
        self._drawn.append(drawn)
        if drawn["shape"] and not drawn["inside"]:
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
