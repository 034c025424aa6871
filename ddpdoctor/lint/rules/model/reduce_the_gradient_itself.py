"""Gradients that are averaged by hand, or weights that are sent round, in a copy.

## What it does
Finds `dist.all_reduce(...)` of a copy of a gradient that is made for the call and has no name
(`p.grad / world_size`, `p.grad.clone()`, and `p.grad.contiguous()` of a model in channels_last),
where an optimizer steps with the gradient itself. And `dist.broadcast(p.clone(), 0)` of weights
that no wrapper sends round.

## Why is this bad?
The collective writes into the copy, which is gone when the call returns. Each rank steps with its
own gradient, or begins with its own weights, and the models part, silently. `contiguous()` is a
copy wherever the memory is not in order, as the weights of convolutions in channels_last are not.

## Example
```python
dist.all_reduce(p.grad / world_size)
```

## Use instead
```python
dist.all_reduce(p.grad)
p.grad /= world_size
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, Lib, Term, Value, within
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.reducing import stepped
from ddpdoctor.lint.engine.queries.wrapping import mentioned, parts, weights_in, wrappers
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP303", name="bypassed-wrapper", confidence="likely")

_IN_PLACE = ("all_reduce", "broadcast", "reduce")
_COPIES = frozenset({"clone", "double", "half", "bfloat16", "cat", "concat", "stack"})


def check(run: Run) -> Iterator[Hit]:
    """Yield in-place collectives on copies of gradients that nobody has afterwards."""
    steps = any(True for _ in events(run.root, "step"))
    told: set[int] = set()
    for event, way in events(run.root, "collective") if steps else ():
        given = event.node.args[0] if isinstance(event.node, ast.Call) and event.node.args else None
        if event.name not in _IN_PLACE or given is None or id(given) in told:
            continue
        if not _is_copy(run, event, given):
            continue
        if _is_of_gradients(event, given):
            told.add(id(given))
            yield Hit(
                given,
                f"{event.name}() writes into a copy, and the optimizer steps with the gradient",
                help="reduce the gradient itself, or write the result back into it",
                path=event.path,
            )
        elif doers(way).mask == EVERYONE and _is_of_lone_weights(run, event):
            told.add(id(given))
            yield Hit(
                given,
                f"{event.name}() writes into a copy, and each rank trains the weights that it has",
                help="hand over the weights themselves (`p.data`), or write the result back",
                path=event.path,
            )


def _is_copy(run: Run, event: Event, given: ast.expr) -> bool:
    """Whether an expression makes a tensor of its own: `float()` need not."""
    if not isinstance(given, ast.Call):
        return isinstance(given, ast.BinOp)
    shared = event.values.get("shares")
    made = run.vm.made.get(shared.what) if shared is not None else None
    named = given.func.attr if isinstance(given.func, ast.Attribute) else ""
    name = made.by if made is not None and made.node is given else named
    return name in _COPIES or (name == "contiguous" and _is_out_of_order(run))


def _is_of_lone_weights(run: Run, event: Event) -> bool:
    """Whether what was copied are weights that an optimizer steps, and that no wrapper sends round.

    What is copied again is a copy of the same.
    """
    shared = event.values.get("shares")
    what = shared.what if shared is not None else None
    while isinstance(what, Term) and what.op == "copied":
        what = what.args[0]
    module = weights_in(Value(what)) if isinstance(what, Term) else None
    if module is None or any(module.number in parts(run, each) for each in wrappers(run)):
        return False
    optimizers = (stepped(each).what for each, _ in events(run.root, "step"))
    stepped_by = (run.vm.store.get((each, "parameters")) for each in optimizers)
    return any(each is not None and module in mentioned(run, each) for each in stepped_by)


def _is_out_of_order(run: Run) -> bool:
    """Whether a model's memory is laid out otherwise than its dimensions follow each other."""
    formats = (
        value.what
        for event, _ in events(run.root, "convert")
        for value in event.values.values()
        if isinstance(value.what, Lib)
    )
    return any(each.name.startswith("torch.channels_last") for each in formats)


def _is_of_gradients(event: Event, given: ast.expr) -> bool:
    """Whether gradients are in it, as torch names them, or as what was taken from there."""
    written = (each.attr for each in ast.walk(given) if isinstance(each, ast.Attribute))
    shared = event.values.get("shares")
    parts = within(shared.what) if shared is not None else ()
    return "grad" in written or any(
        isinstance(each, Term) and each.op == "of" and each.args[1:2] == ("grad",) for each in parts
    )
