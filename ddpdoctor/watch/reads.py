"""Records numbers that the script reads off tensors outside of training: metrics, mostly.

`Tensor.item()` and `float(tensor)` of what carries no graph, the first few from each line and then
the 8th, the 16th, ... What ranks read at one line is compared afterwards.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from types import CodeType
from typing import Any

from ddpdoctor.watch.aside import is_compiling, skip
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users, users_frame

_CLOSELY = 16
_MOST = 600


def install(log: Log) -> None:
    """Wrap the two ways to read a number."""
    import torch

    reads = _Reads(log)
    for name in ("item", "__float__"):
        reads.wrap(torch.Tensor, name)


class _Reads:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._written = 0
        self._calls: Counter[tuple[int, int]] = Counter()
        self._codes: dict[int, CodeType] = {}
        """Kept alive, so that no id is mistaken; a code's own hash reads all of its bytes."""

    def wrap(self, cls: Any, name: str) -> None:
        original = getattr(cls, name)

        @functools.wraps(original)
        def read(tensor: Any) -> Any:
            value = original(tensor)
            if self._log.steps and not tensor.requires_grad and not is_compiling():
                self._note(sys._getframe(1), value)
            return value

        skip(read)
        setattr(cls, name, read)

    @harmless
    def _note(self, frame: Any, value: Any) -> None:
        code = frame.f_code
        if self._written >= _MOST or not is_users(code):
            return
        where = id(code), frame.f_lasti
        self._calls[where] = number = self._calls[where] + 1
        if number > _CLOSELY and number & (number - 1):
            return
        self._written += 1
        self._codes[id(code)] = code
        self._log.write(
            "read",
            number=number,
            value=float(value).hex(),
            place=users_frame(frame),
            way=self._log.way(frame),
        )
