"""Whether an optimizer holds a copy of what a DDP trains, and nobody what is trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ddpdoctor.watch.digests import is_capturing
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

_NAMES = 6


@harmless
def look(
    log: Log,
    number: int,
    step: int,
    optimizers: Iterable[Any],
    wrappers: Iterable[tuple[int, Any]],
    told: int | None,
) -> int | None:
    """Write down what the first of these lacks, and return the wrapper that it is of, if any.

    If that was `told` before, write also that it is over.
    """
    mine, *others = optimizers
    modules = [(each, wrapper.module) for each, wrapper in wrappers]
    inside = {id(p) for _, module in modules for p in module.parameters()}
    own = _parameters(mine)
    idle = [p for p in own if p.requires_grad and p.grad is None and id(p) not in inside]
    if is_capturing(idle) or not (idle or told is not None):
        return told
    held = {id(p) for each in (own, *map(_parameters, others)) for p in each}
    shapes = Counter(tuple(p.shape) for p in idle)
    found, names = told, list[str]()
    for wrapper, module in modules:
        left = {
            name: p
            for name, p in module.named_parameters()
            if p.grad is not None and id(p) not in held
        }
        if left and not Counter(tuple(p.shape) for p in left.values()) - shapes:
            found, names = wrapper, [*left]
            break
    if found is not None:
        log.write(
            "unheld",
            optimizer=number,
            wrapper=found,
            step=step,
            idle=len(idle),
            left=len(names),
            names=names[:_NAMES],
            place=users_frame(),
        )
    return found


def _parameters(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]
