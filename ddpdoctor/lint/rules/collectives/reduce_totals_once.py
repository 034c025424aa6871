"""Running total reduced in every round.

## What it does
Finds a loop that adds to a total and sums that total over the ranks, in place, in every round.

## Why is this bad?
After the first round the total is that of all ranks, on each of them. The next round sums it again:
with four ranks early batches count four, sixteen, sixty-four times. Nothing raises.

## Example
```python
for batch in loader:
    total += loss(batch)
    dist.all_reduce(total)
```

## Use instead
```python
for batch in loader:
    total += loss(batch)
dist.all_reduce(total)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import EITHER
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import Lib, Tensor, Value
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.engine.queries.wrapping import computed_from
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP421", name="reduced-twice", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the reductions of totals that go on to grow."""
    told: set[int] = set()
    for event, way in events(run.root, "collective"):
        total, loop = event.values.get("shares"), _loop(way)
        if event.name != "all_reduce" or not _sums(event) or id(event.node) in told:
            continue
        if loop is None or total is None or not isinstance(total.what, Tensor):
            continue
        added = next(filter(_adds, _on(loop.body, "add_up", "old", total.what.site)), None)
        begun = any(_on(loop.body, "overwrite", "object", total.what.site))
        if added is None or begun or any(_on(run.root, "iterate", "element", total.what.site)):
            continue
        if not _is_made_in(run, total, loop):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the running total is summed in every round, with what was summed before",
                notes=(Related.at(added.place, "it grows"),),
                help="reduce it once, behind the loop, or reduce what is added",
                path=event.path,
            )


def _sums(event: Event) -> bool:
    how = event.values.get("reduce")
    is_sum = how is None or (isinstance(how.what, Lib) and how.what.name.endswith((".SUM", ".AVG")))
    return is_sum and is_world(event.values.get("group"))


def _adds(event: Event) -> bool:
    """Whether one thing grows, and not an element of several."""
    node = event.node
    if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add):
        return False
    return isinstance(node.target, ast.Name | ast.Attribute)


def _loop(way: Way) -> Loop | None:
    """The innermost loop, of which every round does it."""
    for step in reversed(way):
        if isinstance(step.node, Choice):
            return None
        if isinstance(step.node, Loop):
            return step.node
    return None


def _on(seq: Seq, kind: str, role: str, site: int) -> Iterator[Event]:
    """What is done to a tensor, wherever it was computed since."""
    for event, _ in events(seq, kind):
        what = event.values[role].what
        if isinstance(what, Tensor) and what.site == site:
            yield event


def _is_made_in(run: Run, total: Value, loop: Loop) -> bool:
    """Whether each round begins another total."""
    made = (made for _, made in computed_from(run, total))
    return any(each.by != EITHER and each.order > loop.begun for each in made)
