"""A decision on what only the root was given.

## What it does
Finds `dist.reduce(x, dst=0)` whose `x` then decides something on every rank: in an `if`, a `while`,
or as the metric of a scheduler.

## Why is this bad?
Only the root has the sum; what is in `x` elsewhere is undefined. The ranks decide differently.

## Example
```python
dist.reduce(loss, dst=0)
if loss > best:
    stop = True
```

## Use instead
```python
dist.all_reduce(loss)
if loss > best:
    stop = True
```
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Arm, Choice, Event, Loop, Node, events, walk
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, FIRST_HOST, Value
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP416", name="reduced-only-on-root", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield reductions to one rank that all ranks go by."""
    reductions = {
        event.place: event
        for event, way in events(run.root, "collective")
        if event.name == "reduce" and is_world(event.values.get("group"))
        if doers(way).mask == EVERYONE
    }
    for node, way in walk(run.root) if reductions else ():
        value = _goes_by(node)
        if value is None or not value.agree.divergent or value.why is None:
            continue
        places = [each.place for each in value.why.chain()]
        found = next((reductions[place] for place in places if place in reductions), None)
        # Who does what rank 0 does on each host means rank 0: a job of one host has no other.
        if found is not None and doers(way).mask & FIRST_HOST & _decided(node) & ~_root(found):
            del reductions[found.place]
            yield _hit(found, node)


def _goes_by(node: Node) -> Value | None:
    """What decides here."""
    match node:
        case Choice(condition=condition, arms=arms) if any(map(_acts, arms)):
            return condition
        case Loop(count=count):
            return count
        case Event(kind="schedule", values=values):
            return values.get("metric")
    return None


def _decided(node: Node) -> int:
    """The ranks whose way the value decides: what a guard of the rank keeps out is decided yet."""
    if not isinstance(node, Choice):
        return EVERYONE
    return functools.reduce(operator.or_, (arm.opened for arm in node.arms), 0)


def _acts(arm: Arm) -> bool:
    """Whether anything is done but printing, or remembered."""
    return arm.writes or any(
        not (isinstance(each, Event) and each.kind == "print") for each in arm.body.items
    )


def _root(event: Event) -> int:
    root = event.values.get("root")
    return 1 << root.constant if root is not None and isinstance(root.constant, int) else 1


def _hit(event: Event, node: Node) -> Hit:
    return Hit(
        event.node,
        "only the root gets the sum, and every rank goes by it",
        notes=(Related.at(node.place, "it decides"),),
        help="all_reduce() instead of reduce()",
        path=event.path,
    )
