"""Records the loss on the way to some optimizer steps, for people to see the training by.

It is read before each of the first ten steps, then every tenth part of the way later: about a
hundred values of a million steps. To read one on a GPU waits for it.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

from ddpdoctor.watch.aside import is_traced, skip
from ddpdoctor.watch.digests import is_capturing
from ddpdoctor.watch.factors import divisors, factors, heed_packing, outermost
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame
from ddpdoctor.watch.scaling import Scaling

_APART = 10
_LARGEST = 1e18


class Backward(Protocol):
    """Who else is told of what goes backward."""

    def begins(self) -> None:
        """One begins that leads to parameters, whichever it is."""

    def looks(self) -> bool:
        """Whether it is to be told of the next pass."""

    def before(self, roots: Any) -> None:
        """A pass begins."""

    def after(self) -> None:
        """It has ended well."""


@harmless
def listen(log: Log, scaling: Scaling, other: Backward) -> None:
    """Look at what goes backward into parameters."""
    import torch
    from torch import autograd
    from torch.autograd import graph

    original: Any = graph._engine_run_backward
    rests_until = 0

    @harmless
    def note(roots: Any) -> None:
        nonlocal rests_until
        (root,) = roots
        plain = type(root) is torch.Tensor and root.device.type in ("cpu", "cuda")
        if not plain or root.numel() != 1 or is_traced() or is_capturing([root]):
            return
        step = log.steps + 1
        rests_until = step + step // _APART
        scaled = scaling.factor()
        value = float(root.detach()) / scaled
        told = value if -_LARGEST < value < _LARGEST else None
        by, whole = factors(root) or [], (outermost(root) or scaled) / scaled
        log.write(
            "loss",
            step=step,
            value=told,
            place=users_frame(),
            factors=by,
            whole=whole,
            divided=divisors(root) or [],
        )

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        is_training = kwargs.get("accumulate_grad")
        if log.steps >= rests_until and is_training:
            note(args[0])
        if is_training:
            other.begins()
        if not is_training or not other.looks():
            return original(*args, **kwargs)
        other.before(args[0])
        result = original(*args, **kwargs)
        other.after()
        return result

    heed_packing()
    graph._engine_run_backward = run
    autograd._engine_run_backward = run  # type: ignore[attr-defined]
    skip(run)
