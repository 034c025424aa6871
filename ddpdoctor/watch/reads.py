"""Records numbers that the script reads off tensors outside of training: metrics, mostly.

`Tensor.item()`, `float(tensor)` and `Tensor.numpy()` of what carries no graph, also as numpy asks
for it, the first few from each line and then the 8th, the 16th, ... What ranks read at one line is
compared afterwards, of several numbers the sum of the first ones: metrics are made of them.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType
from typing import Any

from ddpdoctor.watch.aside import is_compiling, skip
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import is_users, outwards, users_frame

_CLOSELY = 16
_MOST = 600
_PART = 1024
"""Of an array so many numbers are added up."""
_LOADERS = "/torch/utils/data/"
_FORMATS = "/torch/_tensor.py"
_NUMPY = "-packages/numpy/"


def install(log: Log) -> None:
    """Wrap the ways to read a number."""
    import torch

    reads = _Reads(log)
    reads.wrap_item(torch.Tensor)
    reads.wrap_numpy(torch.Tensor)
    torch.Tensor.__float__ = _Float(reads, torch.Tensor.__float__)  # type: ignore[assignment]


class _Float:
    """`Tensor.__float__`, looked up and then called with no frame of ours in between.

    It warns of a tensor with a graph, and that warning names the line which called it.
    """

    def __init__(self, reads: _Reads, original: Any) -> None:
        self._reads, self._original = reads, original

    def __get__(self, tensor: Any, cls: Any) -> Any:
        bound = self._original.__get__(tensor, cls)
        averages = self._reads.averages
        if averages.kept is not None and tensor is not None and _is_one(tensor):
            averages.add(sys._getframe(1), self._original(tensor.detach()))
        if tensor is not None and self._reads.is_asked(tensor):
            read = functools.partial(self._original, tensor.detach())
            self._reads.note(sys._getframe(1), read, has_graph=tensor.requires_grad)
        return bound


def _is_one(tensor: Any) -> bool:
    return not is_compiling() and tensor.device.type == "cpu" and tensor.numel() == 1


class _Reads:
    def __init__(self, log: Log) -> None:
        self._log = log
        self.averages = log.averages
        self._written = 0
        self._calls: Counter[tuple[int, int]] = Counter()
        self._codes: dict[int, CodeType] = {}
        """Kept alive, so that no id is mistaken; a code's own hash reads all of its bytes."""

    def wrap_item(self, cls: Any) -> None:
        original = cls.item
        averages = self.averages

        @functools.wraps(original)
        def item(tensor: Any) -> Any:
            value = original(tensor)
            if averages.kept is not None and not is_compiling():
                averages.add(sys._getframe(1), value)
            if self.is_asked(tensor):
                self.note(sys._getframe(1), lambda: value, has_graph=tensor.requires_grad)
            return value

        skip(item)
        cls.item = item

    def wrap_numpy(self, cls: Any) -> None:
        original = cls.numpy

        @functools.wraps(original)
        def numpy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            values = original(tensor, *args, **kwargs)
            if self.is_asked(tensor):
                many = values.size != 1
                read = (lambda: values.flat[:_PART].sum()) if many else values.item
                self.note(sys._getframe(1), read, many=many)
            return values

        skip(numpy)
        cls.numpy = numpy

    def is_asked(self, tensor: Any) -> bool:
        """Whether this may be a metric: there were training steps, and the number has no graph.

        Of one with a graph it is asked what a sum of losses has become, after such a sum.
        """
        if not self._log.steps or (tensor.requires_grad and not self._log.summed):
            return False
        return not is_compiling()

    @harmless
    def note(
        self, frame: Any, read: Callable[[], Any], *, has_graph: bool = False, many: bool = False
    ) -> None:
        """Write down what is read at this line, if it is one of those that are looked at."""
        is_told = frame.f_code.co_filename.endswith(_FORMATS) and frame.f_back is not None
        if is_told:  # by `f"{loss:.4f}"`, which has torch read it
            frame = frame.f_back
        while _NUMPY in frame.f_code.co_filename and frame.f_back is not None:
            frame = frame.f_back
        code = frame.f_code
        if self._written >= _MOST or not is_users(code):
            return
        if has_graph:
            self._log.summed -= 1
        where = id(code), frame.f_lasti
        self._calls[where] = number = self._calls[where] + 1
        if number > _CLOSELY and number & (number - 1):
            return
        self._codes[id(code)] = code
        if any(_LOADERS in each.f_code.co_filename for each in outwards(frame)):
            return  # a sample is made there, and no metric of it
        self._written += 1
        self._log.write(
            "read",
            number=number,
            step=self._log.steps,
            value=float(read()).hex(),
            place=users_frame(frame),
            way=self._log.way(frame),
            aside=is_told or has_graph,
            many=many,
        )
