"""Arccos of an unclamped value.

## What it does
Finds `torch.acos` / `arccos` of a dot product or quotient that is not clamped, in distributed code.

## Why is this bad?
Rounding puts a cosine at 1.0000001: NaN. The all-reduce spreads one rank's NaN to all; and at
exactly 1 the gradient is infinite.

## Example
```python
angle = torch.acos((u * v).sum(-1))
```

## Use instead
```python
angle = torch.acos((u * v).sum(-1).clamp(-1 + 1e-7, 1 - 1e-7))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import NONE, Const, Tensor, Term, Value
from ddpdoctor.lint.engine.queries.sharding import of_many_ranks
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP606", name="unprotected-arccos", confidence="likely")

_PRODUCTS = frozenset(("sum", "dot", "einsum", "matmul", "cosine_similarity", "bmm", "MatMult"))
_NORMS = frozenset(("norm", "normalize", "vector_norm"))
_PROTECTS = frozenset(
    ("clamp", "clip", "clamp_", "tanh", "cos", "sigmoid", "hardtanh", "where", "minimum", "min")
)


_SHRUNK = "shrunk"
"""Multiplied by a little less than one, which leaves rounding a margin."""


def _is_margin(factor: Value) -> bool:
    """Whether it is 0.9999, or `1 - epsilon` of an epsilon that the caller gives."""
    number, what = factor.constant, factor.what
    if isinstance(what, Term) and what.op == "Sub":
        return what.args[0] in (Const(1), Const(1.0))
    return isinstance(number, float) and _LEAST <= number < 1


_LEAST = 0.9


def check(run: Run) -> Iterator[Hit]:
    """Yield arccosines that rounding can push out of their domain."""
    if not of_many_ranks(run):
        return
    for event, _ in events(run.root, "arccos"):
        steps = set(_steps(run, event.values.get("of", NONE), 12))
        if steps & (_PRODUCTS | _NORMS) and not steps & {*_PROTECTS, _SHRUNK}:
            yield Hit(
                event.node,
                "arccos of a value that rounding can push beyond 1: NaN on one rank, then on all",
                help="clamp to [-1 + eps, 1 - eps] first",
                path=event.path,
            )


def _steps(run: Run, value: Value, depth: int) -> Iterator[str]:
    """The operations that a value was computed by."""
    if not depth:
        return
    what = value.what
    made = run.vm.made.get(what)
    of: tuple[Value, ...] = ()
    if made is not None:
        by, of = made.by, made.of
    elif isinstance(what, Term):
        by = what.op
        of = tuple(Value(each) for each in what.args if isinstance(each, Const | Tensor | Term))
    else:
        return
    yield _SHRUNK if by == "Mult" and any(map(_is_margin, of)) else by
    for each in of:
        yield from _steps(run, each, depth - 1)
