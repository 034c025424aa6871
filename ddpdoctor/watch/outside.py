"""Records parameters that are trained beside a DDP without being part of one."""

from __future__ import annotations

import gc
import itertools
import zlib
from collections import Counter
from typing import Any

from ddpdoctor.watch.digests import Budget, digests, few, is_capturing, size
from ddpdoctor.watch.given import GRADIENT
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.log import Log
from ddpdoctor.watch.places import users_frame

_NAMES_LIMIT = 256
_GRADED = 16
"""Gradients of which some elements are written."""
Clipped = dict[str, Any]
"""What is written of a clipping."""
Graded = dict[str, Any]
"""What is written of a backward pass."""
_names: dict[int, dict[int, str]] = {}
"""By optimizer: the names found for its parameters, by their ids. Below zero: without a DDP."""


@harmless
def parameters(optimizer: Any, inside: set[int]) -> list[Any]:
    """The parameters of this optimizer that have a gradient and that no wrapper holds."""
    return [
        p
        for group in optimizer.param_groups
        for p in group["params"]
        if id(p) not in inside and p.grad is not None
    ][:_NAMES_LIMIT]


@harmless
def write(log: Log, optimizer: int, step: int, found: list[Any], budget: Budget) -> None:
    """Write the digests of their values, each under the best name that can be found."""
    if is_capturing(found):
        return
    values = _named(optimizer, found)
    if budget.take(size(values)):
        place = users_frame()
        log.write("sample", optimizer=optimizer, step=step, place=place, parameters=digests(values))


def is_one_of_several() -> bool:
    """Whether this process has joined a group of several."""
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


@harmless
def gradients_of(number: int, optimizer: Any, given: set[int]) -> dict[str, Any]:
    """The gradients of an optimizer's own parameters, of those that are given by their ids."""
    found = [p for p in parameters(optimizer, set()) or () if id(p) in given]
    return _gradients(_named(~number, found)) if found else {}


@harmless
def clipped(gradients: dict[str, Any], *, bit: bool, budget: Budget) -> Clipped | None:
    """What clipping has left of these."""
    if not gradients or is_capturing(gradients.values()) or not budget.take(size(gradients)):
        return None
    return {"clipped": digests(gradients), "clip_bit": bit, "clipped_at": users_frame()}


@harmless
def graded(number: int, optimizer: Any, budget: Budget) -> dict[str, Any]:
    """Some elements of the gradients of an optimizer as they are now, and a digest of all."""
    found = parameters(optimizer, set()) or []
    if is_capturing(found):
        return {"left": {}}
    gradients = _gradients(_named(~number, found))
    some = dict(itertools.islice(gradients.items(), _GRADED))
    whole = digests(gradients) if budget.take(size(gradients)) else {}
    digest = zlib.crc32(repr(sorted(whole.items())).encode())
    return {"left": few(some), "whole": f"{digest:x}" if whole else ""}


@harmless
def some(number: int, optimizer: Any) -> dict[str, Any]:
    """The first of its parameters of which something was written, by name."""
    names = _names.get(~number, {})
    every = (p for group in optimizer.param_groups for p in group["params"] if id(p) in names)
    return {names[id(p)]: p for p in itertools.islice(every, _GRADED)}


@harmless
def heads(number: int, optimizer: Any) -> dict[tuple[float, ...], str]:
    """The first numbers of such gradients, by which they are known again; zeros say nothing."""
    import torch

    found = (parameters(optimizer, set()) or [])[:_GRADED]
    named = {n: p.grad.detach() for n, p in _named(~number, found).items()}
    named = {n: g for n, g in named.items() if g.numel() >= GRADIENT and g.is_floating_point()}
    if not named or is_capturing(named.values()):
        return {}
    rows = torch.stack([g.reshape(-1)[:GRADIENT].double().cpu() for g in named.values()]).tolist()
    return {tuple(row): name for name, row in zip(named, rows, strict=True) if any(row)}


@harmless
def write_by_hand(
    log: Log, number: int, step: int, optimizer: Any, seen: dict[str, Any], budget: Budget
) -> None:
    """Write the digests of what it holds, and of the gradients that it is about to step on.

    `seen`: what clipping and the backward pass have left of it for this step.
    """
    found = parameters(optimizer, set())
    if not found or is_capturing(found):
        return
    values = _named(~number, found)
    gradients = _gradients(values)
    if budget.take(size(values) + size(gradients)):
        stepped = few({name: gradients[name] for name in seen.get("left", ()) if name in gradients})
        log.write(
            "by-hand",
            optimizer=number,
            step=step,
            parameters=digests(values),
            gradients=digests(gradients),
            place=users_frame(),
            few=stepped,
            rule=_rule(optimizer),
            rates=rates(optimizer),
            **seen,
        )


def rates(optimizer: Any) -> list[float]:
    """The learning rate of each group."""
    groups = optimizer.param_groups if optimizer is not None else ()
    found = [group["lr"] for group in groups if "lr" in group]
    return [float(rate) for rate in found if not getattr(rate, "is_cuda", False)]


def _gradients(values: dict[str, Any]) -> dict[str, Any]:
    return {name: p.grad for name, p in values.items()}


def _rule(optimizer: Any) -> str:
    """The optimizer of torch's that it is."""
    kinds = (each for each in type(optimizer).__mro__ if each.__module__.startswith("torch.optim."))
    return next((each.__name__ for each in kinds), "")


def _named(optimizer: int, found: list[Any]) -> dict[str, Any]:
    names = _names.get(optimizer)
    if names is None or any(id(p) not in names for p in found):
        names = _names[optimizer] = _search(found)
    return {names[id(p)]: p for p in found}


def _search(found: list[Any]) -> dict[int, str]:
    """Names by the largest module that holds each: "Critic.0.weight". Costs some 30 ms, once.

    Ranks are compared by these names, so it must not matter in which order modules are found: of
    two that are equally large one holds the other, and gives the longer name.
    """
    import torch

    roots = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
    names = {id(p): f"parameter {number}" for number, p in enumerate(found)}
    best: dict[int, tuple[int, int, str]] = {}
    for root in roots:
        inside = dict(root.named_parameters())
        for name, p in inside.items():
            found_here = (len(inside), name.count("."), f"{type(root).__name__}.{name}")
            if id(p) in names and best.get(id(p), (0, 0, "")) < found_here:
                best[id(p)] = found_here
                names[id(p)] = found_here[2]
    often = Counter[str]()  # modules of one class have parameters of one name
    for number, name in names.items():
        often[name] += 1
        if often[name] > 1:
            names[number] = f"{name} ({often[name]})"
    return names
