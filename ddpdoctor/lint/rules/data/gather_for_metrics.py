"""Padded samples in a metric.

## What it does
Finds evaluation loops over a loader that accelerate prepared, in which predictions and labels are
gathered by `accelerator.gather` and nothing takes the last batch's padding off.

## Why is this bad?
A prepared loader gives every rank as many samples: where the data set does not divide, the last
batch is filled up with samples from its beginning. They are gathered too, and count twice.

## Example
```python
for x, y in eval_loader:
    predictions, labels = accelerator.gather((model(x).argmax(-1), y))
    metric.add_batch(predictions=predictions, references=labels)
```

## Use instead
```python
for x, y in eval_loader:
    predictions, labels = accelerator.gather_for_metrics((model(x).argmax(-1), y))
    metric.add_batch(predictions=predictions, references=labels)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Tensor, Tuple, Value, What
from ddpdoctor.lint.engine.queries.sharding import loops, passes
from ddpdoctor.lint.engine.queries.wrapping import origins
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP208", name="padded-evaluation", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield gathers of predictions and labels with the padding."""
    gathers = [(e, way) for e, way in events(run.root, "collective") if _is_plain(e)]
    evaluated = {
        id(each.event.node): each
        for each in (passes(run) if gathers else ())
        if not each.trains
        and all(run.vm.store.get((Ref(one), "#prepared")) is not None for one in each.loaders)
    }
    told: set[int] = set()
    for event, way in gathers:
        within = any(id(loop.node) in evaluated for loop in loops(way))
        if not within or id(event.node) in told or _is_cut(run, event):
            continue
        if _has_labels(run, event):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the samples that fill up the last batch are gathered too, and count twice",
                help="accelerator.gather_for_metrics(...) leaves them out",
                path=event.path,
            )


def _is_plain(event: Event) -> bool:
    """Whether accelerate gathers, and keeps all."""
    return event.name == "gather" and "gives" in event.values


def _has_labels(run: Run, event: Event) -> bool:
    """Whether something that is the batch's own is gathered together with what is predicted."""
    given = event.values["gives"].what
    if not isinstance(given, Tuple):
        return False
    return any(
        isinstance(one.what, Tensor) and one.what.site in run.vm.batches
        for each in given.items
        if isinstance(each.what, Tensor) and not each.what.of
        for one in origins(run, each)
    )


def _is_cut(run: Run, event: Event) -> bool:
    """Whether the program cuts what it has gathered to a length, as it would the last batch."""
    gathered = event.values["filled"].what
    return any(
        each.by == "slice" and _is_first_part(each.node) and gathered in _whats(run, each.of)
        for each in run.vm.made.values()
    )


def _is_first_part(node: ast.AST) -> bool:
    """Whether it is `x[:n]`."""
    part = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is not None


def _whats(run: Run, values: tuple[Value, ...]) -> set[What]:
    return {one.what for each in values for one in origins(run, each)}
