"""Records what modules hold that are called while training, and that no DDP holds.

For the length of a few windows all calls of modules are listened to, by torch's own global hooks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ddpdoctor.watch.aside import is_traced
from ddpdoctor.watch.digests import FEW, Budget, digests, is_capturing, size
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.identity import ByIdentity
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, users_frame
from ddpdoctor.watch.replacing import Replaced

_MODULES, _TENSORS = 8, 128
"""So many modules of a window, and so many tensors of each, are looked at."""
_CHANGING = ("lerp_", "copy_", "mul_", "add_", "sub_", "div_")
_CHANGES = 4096
"""So many tensors that such a method has changed are remembered of a window."""


@dataclass
class _Called:
    place: Frame | None
    feeds: bool = False


class Beside:
    """The modules that were called in the window that is open, if one is."""

    def __init__(self, log: Log, budget: Budget, inside: Callable[[], bool]) -> None:
        self._log, self._budget, self._inside = log, budget, inside
        """`inside`: whether a forward pass of a wrapper is under way."""
        self._called = ByIdentity[_Called]()
        self._given = ByIdentity[_Called]()
        """Tensors that they gave."""
        self._changed: dict[int, tuple[Frame | None, int | None]] = {}
        """Where, and on what way, what lies at an address was changed last."""

    def listen(self, replaced: Replaced) -> None:
        """A window begins."""
        import torch
        from torch.nn.modules import module

        self._called, self._given, self._changed = ByIdentity(), ByIdentity(), {}
        for name in _CHANGING:
            replaced.put(torch.Tensor, name, self._changing)
        replaced.hold(module.register_module_forward_pre_hook(self._before))
        replaced.hold(module.register_module_forward_hook(self._after))

    def fed(self, tensor: Any) -> None:
        """The model is given this."""
        if (found := self._given.get(tensor)) is not None:
            found.feeds = True

    def write(self, step: int, held: set[int]) -> None:
        """What they hold, but for the modules that wrappers hold."""
        all_called, self._called, self._given = self._called.items(), ByIdentity(), ByIdentity()
        changed, self._changed = self._changed, {}
        for number, (module, called) in enumerate(_outermost(all_called, held)):
            parameters = dict([*module.named_parameters()][:_TENSORS])
            buffers = dict([*_buffers(module)][:_TENSORS])
            state = parameters | buffers
            if number >= _MODULES or is_capturing(state.values()):
                break
            if self._budget.take(size(state)):
                at, way = _first(changed, (parameters or buffers).values())
                self._log.write(
                    "beside",
                    step=step,
                    number=number,
                    type=type(module).__qualname__,
                    shapes=" ".join("x".join(map(str, each.shape)) for each in state.values()),
                    parameters=digests(parameters),
                    buffers=(counted := digests(buffers)),
                    few=[_some(buffers[name]) for name in counted],
                    feeds=called.feeds,
                    place=called.place,
                    changed_at=at,
                    way=way,
                )

    def _changing(self, original: Any) -> Any:
        def change(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(tensor, *args, **kwargs)
            self._note_change(tensor)
            return result

        return change

    @harmless
    def _note_change(self, tensor: Any) -> None:
        frame = sys._getframe(4)  # beyond this: harmless, the method, and what stands in its place
        is_torchs = "/torch/" in frame.f_code.co_filename
        if tensor.grad_fn is not None or is_torchs or len(self._changed) >= _CHANGES:
            return
        self._changed[tensor.data_ptr()] = users_frame(frame), self._log.way(frame)

    @harmless
    def _before(self, module: Any, inputs: Any) -> None:
        if not is_traced() and self._called.get(module) is None and not self._inside():
            self._called[module] = _Called(users_frame(sys._getframe(1)))

    @harmless
    def _after(self, module: Any, inputs: Any, output: Any) -> None:
        called = self._called.get(module)
        if called is not None and not is_traced() and hasattr(output, "dtype"):
            self._given[output] = called


def _first(
    changed: dict[int, tuple[Frame | None, int | None]], tensors: Iterable[Any]
) -> tuple[Frame | None, int | None]:
    """Where the first of some tensors was changed, if one was."""
    found = (changed.get(each.data_ptr()) for each in tensors) if changed else iter(())
    return next(filter(None, found), (None, None))


def _buffers(module: Any) -> Iterator[tuple[str, Any]]:
    """Not what a batch norm counts while it trains: it is counted for another time."""
    from torch.nn.modules.batchnorm import _NormBase

    for path, part in module.named_modules():
        if not isinstance(part, _NormBase):
            for name, buffer in part.named_buffers(recurse=False):
                yield f"{path}.{name}".lstrip("."), buffer


def _some(buffer: Any) -> list[float]:
    """A few of its elements, where it is of plain numbers."""
    if not buffer.is_floating_point() or not buffer.is_contiguous():
        return []
    step = max(1, buffer.numel() // FEW)
    row = buffer.detach().view(-1)[::step][:FEW].tolist()
    return row if all(map(math.isfinite, row)) else []


def _outermost(
    called: Iterable[tuple[Any, _Called]], held: set[int]
) -> Iterator[tuple[Any, _Called]]:
    """Those that hold something, and that neither hold a wrapper nor are held by another."""
    inner: set[int] = set()
    for module, each in called:
        if id(module) in inner:
            continue
        parts = {id(part) for part in module.modules()}
        if parts & held:
            continue
        inner |= parts
        if any(True for _ in (*module.parameters(), *module.buffers())):
            yield module, each
