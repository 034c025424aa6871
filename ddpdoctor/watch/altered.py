"""Records which lines change a model in place after it was wrapped, until it is first used.

By then DDP has made the ranks equal, and does not look again. Only as long as that lasts, what
changes a tensor in place is listened to, `torch.nn.init` and `load_state_dict` included: these
call it, too. And after a few steps, until the model is used again: optimizers step before that.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from typing import Any

from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame
from ddpdoctor.watch.replacing import Replaced

_OPERATORS = ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__")
_LEFT_OUT = frozenset({"requires_grad_", "share_memory_", "detach_", "rename_"}) | frozenset(
    {"masked_fill_", "masked_scatter_", "resize_", "resize_as_", "set_"}
)
"""They change no number, or torch warns of them by the line that calls."""
_MOST, _LINES, _NAMES = 20_000, 16, 512
"""Calls that are listened to: who prepares data meanwhile makes many; lines and names told."""


class Altered:
    """The parameters of the wrappers that no forward pass has been through."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._replaced = Replaced()
        self._known: dict[int, tuple[int, str]] = {}
        """By where its numbers lie: the wrapper's number, and the parameter's name."""
        self._found: dict[tuple[int, Frame], tuple[int | None, list[str]]] = {}
        """By wrapper and line: the way there, and the parameters' names."""
        self._left = _MOST
        self._step = 0

    @property
    def is_on(self) -> bool:
        """Whether it listens."""
        return self._replaced.is_on

    @harmless
    def wrapped(self, number: int, wrapper: Any) -> None:
        """A model was wrapped just now."""
        self._listen(number, wrapper)

    @harmless
    def stepped(self, step: int, wrappers: Iterable[tuple[int, Any]]) -> None:
        """The optimizer has taken this step."""
        if not self.is_on:
            self._step = step
            for number, wrapper in wrappers:
                self._listen(number, wrapper)

    def _listen(self, number: int, wrapper: Any) -> None:
        from torch import Tensor

        for name, parameter in wrapper.module.named_parameters():
            self._known.setdefault(parameter.untyped_storage().data_ptr(), (number, name))
        if self._left > 0 and self._replaced.begin():
            for name in _changing():
                self._replaced.put(Tensor, name, self._listening)

    @harmless
    def end(self) -> None:
        """It is used, or the job ends: what was found is written down."""
        self._replaced.undo()
        for (wrapper, place), (way, names) in self._found.items():
            self._log.write(
                "altered",
                wrapper=wrapper,
                names=names[:_NAMES],
                place=place,
                step=self._step,
                way=way,
            )
        self._known, self._found, self._step = {}, {}, 0

    def _listening(self, original: Any) -> Any:
        def change(*args: Any, **kwargs: Any) -> Any:
            self._note(args[0])
            return original(*args, **kwargs)

        return change

    @harmless
    def _note(self, tensor: Any) -> None:
        self._left -= 1
        if self._left < 0:
            self.end()
            return
        known = self._known.get(tensor.untyped_storage().data_ptr())
        if known is None or (place := users_frame(sys._getframe(2))) is None:
            return
        number, name = known
        if (number, place) in self._found or len(self._found) < _LINES:
            if (number, place) not in self._found:
                self._found[number, place] = self._log.way(sys._getframe(2)), []
            _, names = self._found[number, place]
            if name not in names[-1:]:
                names.append(name)


@functools.cache
def _changing() -> tuple[str, ...]:
    """The methods of tensors that change one in place."""
    from torch import Tensor

    methods = (name for name in dir(Tensor) if name[-1] == "_" and name[0] != "_")
    return tuple(name for name in (*_OPERATORS, *methods) if name not in _LEFT_OUT)
