"""No set_epoch anywhere.

## What it does
Finds a shuffling `DistributedSampler` whose loader is run through epoch after epoch while training,
and that nobody tells the epoch.

## Why is this bad?
The sampler shuffles with `seed + epoch`, and the epoch stays 0: every epoch has the same order.

## Example
```python
for epoch in range(epochs):
    for batch in loader:
        ...
```

## Use instead
```python
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        ...
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Loop, events
from ddpdoctor.lint.engine.queries.sharding import SAMPLER, made, numbers, passes, shards
from ddpdoctor.lint.rule import About, Edit, Fix, Hit, Related

ABOUT = About(code="DDP203", name="missing-set-epoch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield training samplers that shuffle alike in every epoch."""
    samplers, loaders = made(run, SAMPLER), shards(run)
    told = _told(run)
    if told is None:
        return
    done: set[int] = set()
    for each in passes(run):
        for loader in each.loaders & loaders.keys():
            sampler = loaders[loader]
            again = [loop for loop in each.outer if loop.rounds != 1]
            if sampler in told or sampler in done or not again or not each.trains:
                continue
            if not _shuffles(samplers, sampler):
                continue
            done.add(sampler)
            made_by = samplers[sampler]
            over = Related.at(each.event.place, "its loader is run through again and again")
            yield Hit(
                made_by.node,
                "nothing calls set_epoch() on this sampler: every epoch has the same order",
                notes=(over,),
                help="`sampler.set_epoch(epoch)` as the first line of the epoch loop",
                fix=_fix(run, made_by, again[0]),
                path=made_by.path,
            )


def _fix(run: Run, made_by: Event, epochs: Loop) -> Fix | None:
    """The line at the top of the epoch loop, where the sampler has a name in the same function."""
    source, loop = run.source(made_by.path), epochs.node
    if source is None or epochs.path != made_by.path or not isinstance(loop, ast.For):
        return None
    holder = source.function(made_by.node) or source.tree
    if holder is not (source.function(loop) or source.tree):
        return None
    if not isinstance(loop.target, ast.Name):
        return None
    for node in ast.walk(holder):
        if isinstance(node, ast.If | ast.IfExp) and _holds(node, made_by.node):
            return None  # it may not be there: then the line needs a condition too
    for node in ast.walk(holder):
        if isinstance(node, ast.Assign) and node.value is made_by.node:
            (target, *more) = node.targets
            if more or not isinstance(target, ast.Name):
                return None
            first = loop.body[0]
            line = f"{' ' * first.col_offset}{target.id}.set_epoch({loop.target.id})\n"
            return Fix((Edit((first.lineno, 0), (first.lineno, 0), line),))
    return None


def _holds(outer: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(outer))


def _told(run: Run) -> set[int] | None:
    """The samplers that are told the epoch; None where somebody is told, and nobody knows who."""
    found: set[int] = set()
    for event, _ in events(run.root, "set_epoch"):
        known = numbers(event.values.get("object"))
        if not known:
            return None
        found |= known
    return found


def _shuffles(samplers: dict[int, Event], sampler: int) -> bool:
    shuffle = samplers[sampler].values.get("shuffle")
    return shuffle is None or shuffle.is_const(True)
