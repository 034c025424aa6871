"""Records by what a loss is divided, in a few windows between steps, and what was summed up there.

Who divides a sum by the count of all ranks has to multiply by their number, as DDP averages. Seen
are the quotients that give one number with a graph, and what comes back to them in the backward
pass. A window is left out in which something is multiplied by as many as there are ranks, gradients
are scaled by hand, or a library reduces more than a few numbers, which may be gradients, or what
has a gradient itself. Of the graph itself nothing is read: that may run what was left for the
backward pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ddpdoctor.watch import given
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import Frame, is_users, outwards, users_frame
from ddpdoctor.watch.replacing import Replaced

_QUOTIENTS = ("__truediv__", "div")
_SCALING = ("mul_", "__imul__", "div_", "__itruediv__")
_PRODUCTS = ("__mul__", "__rmul__", "mul")
_FEW, _MOST = 8, 16
"""Numbers of one reduction; reductions and quotients of one window."""


class Shares:
    """The quotients of the window that is open, if one is."""

    def __init__(self, log: Log, inside: Callable[[], bool]) -> None:
        self._log, self._inside = log, inside
        """`inside`: whether a forward pass of a wrapper is under way."""
        self._sums: list[list[float]] = []
        self._found: list[dict[str, Any]] = []
        self._is_scaled = False

    def listen(self, replaced: Replaced) -> None:
        """A window begins."""
        import torch

        self._sums, self._found, self._is_scaled = [], [], False
        self._log.summing = self._sum
        replaced.hold(self)
        for name in _QUOTIENTS:
            replaced.put(torch.Tensor, name, self._dividing)
        for name in _PRODUCTS:
            replaced.put(torch.Tensor, name, self._multiplying)
        replaced.put(torch, "mul", self._multiplying)
        for name in _SCALING:
            replaced.put(torch.Tensor, name, self._scaling)
        replaced.put(torch, "_foreach_mul_", self._scaling)

    def remove(self) -> None:
        """It has ended."""
        self._log.summing = None

    def write(self, step: int) -> None:
        """What was found, unless it was made good elsewhere."""
        found = [
            {"place": each["place"], "by": each["by"]}
            for each in self._found
            if each["back"] == 1.0 and not self._is_scaled
        ]
        if found:
            self._log.write("shares", step=step, sums=self._sums, found=found)

    @harmless
    def _sum(self, group: Any, tensor: Any) -> None:
        """This is about to be summed up over the ranks."""
        is_few = 0 < tensor.numel() <= _FEW
        is_known = given.is_direct() or (is_few and not _has_gradient())
        self._is_scaled = self._is_scaled or not is_known
        wrappers = [alive for each in self._log.wrappers if (alive := each()) is not None]
        is_of_all = all(each.process_group.size() == group.size() for each in wrappers)
        if is_of_all and is_few and len(self._sums) < _MOST:
            self._sums.append([float(each) for each in tensor.detach().reshape(-1).tolist()])

    def _dividing(self, original: Any) -> Any:
        def divide(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            place = users_frame(sys._getframe(1)) if self._sums else None
            if place is not None and len(args) > 1:
                self._note(place, result, args[1])
            return result

        return divide

    @harmless
    def _note(self, place: Frame, result: Any, by: Any) -> None:
        if result.dim() or not result.requires_grad or getattr(by, "requires_grad", False):
            return
        if len(self._found) < _MOST:
            row = {"place": place, "by": float(by), "back": 0.0}
            self._found.append(row)
            # Not a hook of the tensor's, of which whoever saves it is warned.
            result.grad_fn.register_prehook(harmless(lambda back: row.update(back=float(back[0]))))

    def _multiplying(self, original: Any) -> Any:
        def multiply(*args: Any, **kwargs: Any) -> Any:
            if not self._is_scaled:
                self._note_product(*args)
            return original(*args, **kwargs)

        return multiply

    @harmless
    def _note_product(self, *factors: Any) -> None:
        from torch.distributed import get_world_size

        trained = [each for each in factors if getattr(each, "requires_grad", False)]
        if not trained or (self._inside() and any(each.dim() for each in trained)):
            return
        others = (each for each in factors if not getattr(each, "requires_grad", False))
        numbers = (each for each in others if not getattr(each, "shape", ()))
        self._is_scaled = any(float(each) == get_world_size() for each in numbers)

    def _scaling(self, original: Any) -> Any:
        def scale(*args: Any, **kwargs: Any) -> Any:
            # Between here and who calls is what stands in place of the original.
            if self._found and is_users(sys._getframe(2).f_code):
                self._is_scaled = True
            if not self._is_scaled:
                self._note_product(*args[:2])
            return original(*args, **kwargs)

        return scale


def _has_gradient() -> bool:
    """Whether a function with a backward of its own calls, between here and the user's line."""
    for frame in outwards(sys._getframe(1)):
        if is_users(frame.f_code):
            return False
        if frame.f_code.co_filename.endswith("/torch/autograd/function.py"):
            return True
    return False
