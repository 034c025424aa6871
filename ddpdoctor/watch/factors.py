"""By what each mean over a rank's own samples is multiplied in the loss that goes backward.

Read from the graph, before it is used up: sums, and products and quotients with one number, down to
what torch takes a mean of, be it by a loss of its own or by a sum over as many as it has. A sum
over as many as all ranks have is a mean that is divided by their number. A graph whose tensors
somebody packs away is left alone: to read a checkpoint's would run its forward again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from math import prod
from typing import Any

from ddpdoctor.watch.aside import skip
from ddpdoctor.watch.harmless import harmless

_DEEPEST, _MOST = 64, 16
_SAME = ("Neg", "ToCopy", "Squeeze", "Unsqueeze", "View", "Reshape", "Alias", "Clone")
_MEAN, _SUM = 1, 2
"""How torch's losses reduce, as it writes it down."""


_is_packed = False
"""Whether anybody has begun to pack away what graphs keep."""


@harmless
def heed_packing() -> None:
    """Notice the first saved_tensors_hooks(), which checkpoints without reentry come with."""
    from torch.autograd.graph import saved_tensors_hooks

    hooks: Any = saved_tensors_hooks
    original = hooks.__enter__

    @functools.wraps(original)
    def enter(entered: Any) -> Any:
        global _is_packed
        _is_packed = True
        hooks.__enter__ = original
        return original(entered)

    hooks.__enter__ = enter
    skip(enter)


@harmless
def factors(root: Any) -> list[float]:
    """The size of each factor; none where anything but a mean is among the terms."""
    if _is_packed:
        return []
    found: list[float] = []
    rest: list[tuple[Any, float, int]] = [(root.grad_fn, 1.0, 0)]
    while rest:
        node, factor, depth = rest.pop()
        if node is None or depth > _DEEPEST or len(found) >= _MOST:
            return []
        name = _name(node)
        if name in ("Add", "Sub"):
            scales = (1.0, float(node._saved_alpha))
            terms = zip((below for below, _ in node.next_functions), scales, strict=True)
            rest += [(below, factor * by, depth + 1) for below, by in terms if below is not None]
        elif name == "Rsub":  # a number less this: `1 - dice.mean()`
            below, by = node.next_functions[0][0], float(node._saved_alpha)
            rest.append((below, factor * by, depth + 1))
        elif name in ("Mul", "Div"):
            below, by = _scaled(node)
            if not by:
                return []
            counts = _counts(below) if name == "Div" else ()
            if by in counts:
                found.append(factor)
                continue
            ranks = _ranks()
            if name == "Div" and ranks > 1 and by / ranks in _counts(below, weighed=True):
                found.append(factor / ranks)  # by as many as all of them have
                continue
            rest.append((below, factor * (by if name == "Mul" else 1 / by), depth + 1))
        elif name in _SAME:
            rest.append((node.next_functions[0][0], factor, depth + 1))
        elif name == "Mean" and (by := _before(node.next_functions[0][0])):
            found.append(factor * by)
        elif getattr(node, "_saved_reduction", 0) == _MEAN:
            found.append(factor)
        else:
            return []
    return [abs(each) for each in found]


@harmless
def outermost(root: Any) -> float:
    """By which number the whole is multiplied in the end."""
    return abs(prod(1 / by if is_divided else by for is_divided, by in _outside(root)))


@harmless
def divisors(root: Any) -> list[float]:
    """By which numbers the whole is divided in the end, the last first."""
    return [by for is_divided, by in _outside(root) if is_divided]


def _outside(root: Any) -> Iterator[tuple[bool, float]]:
    """The products with one number that all of it goes through, and whether each is a quotient."""
    node = root.grad_fn
    for _ in range(_DEEPEST):
        name = "" if _is_packed or node is None else _name(node)
        if name in ("Mul", "Div"):
            below, by = _scaled(node)
            is_learnt = sum(each is not None for each, _ in node.next_functions) > 1
            if is_learnt or not by:
                return
            yield name == "Div", by
            node = below
        elif name in _SAME:
            node = node.next_functions[0][0]
        else:
            return


def _ranks() -> int:
    from torch import distributed

    return distributed.get_world_size() if distributed.is_initialized() else 1


def _name(node: Any) -> str:
    """What made it: "Mean" of MeanBackward0, which is told apart from others of its kind."""
    return str(node.name()).partition("Backward")[0]


def _scaled(node: Any) -> tuple[Any, float]:
    """What is multiplied or divided by one number, and that; 0 if it is by anything else."""
    inputs = [below for below, _ in node.next_functions if below is not None]
    other: Any = node._saved_other if len(inputs) == 1 else ()
    if hasattr(other, "numel"):
        is_number = other.numel() == 1 and other.device.type == "cpu"
        return inputs[0], float(other) if is_number else 0.0
    return (inputs or [None])[0], float(other) if isinstance(other, int | float) else 0.0


def _before(node: Any) -> float:
    """By which number the terms of a mean are multiplied; 0 if by other numbers each."""
    factor = 1.0
    for _ in range(_DEEPEST):
        name = _name(node)
        if name in _SAME:
            node = node.next_functions[0][0]
        elif name in ("Mul", "Div") and all(below is not None for below, _ in node.next_functions):
            return factor
        elif name in ("Mul", "Div"):
            node, by = _scaled(node)
            if not by:
                return 0.0
            factor *= by if name == "Mul" else 1 / by
        else:
            return factor
    return 0.0


def _counts(node: Any, *, weighed: bool = False) -> tuple[float, ...]:
    """Of how many terms this is the sum, and of how many samples; none if it is no sum.

    `weighed`: each term may be multiplied by a number of its own, and of samples nothing is said.
    """
    while _name(node) in _SAME:
        node = node.next_functions[0][0]
    if _name(node) == "Sum" and (sizes := node._saved_self_sym_sizes):
        by = _before(node.next_functions[0][0])
        if by == 1.0:
            return float(prod(sizes)), float(sizes[0])
        return (float(prod(sizes)),) if weighed and not by else ()
    if getattr(node, "_saved_reduction", 0) == _SUM and hasattr(node, "_saved_target"):
        sizes = node._saved_target.shape
        return (float(prod(sizes)), float(sizes[0])) if sizes else ()
    return ()
