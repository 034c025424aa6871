"""Collective of a group that some ranks call with None.

## What it does
Finds a collective whose `group` is a group of its own on the ranks that are in it, and None on the
others, where all of them call it.

## Why is this bad?
None means all ranks. The ranks outside of the group wait in a collective of the whole job, to which
the others never come: it pairs with their next one, or hangs.

## Example
```python
group = pair if rank in (0, 1) else None
dist.all_reduce(score, group=group)
```

## Use instead
```python
if rank in (0, 1):
    dist.all_reduce(score, group=pair)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import Either
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP402", name="collective-order-mismatch", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield collectives that some ranks call of a group, and others of all ranks."""
    told: set[int] = set()
    for event, way in events(run.root, "collective"):
        group = event.values.get("group")
        what = group.what if group is not None else None
        if group is None or not isinstance(what, Either) or id(event.node) in told:
            continue
        here = doers(way).mask
        pairs = list(zip(what.options, what.masks, strict=False))
        outside = any(each.is_const(None) and mask & here for each, mask in pairs)
        inside = any(not each.is_const(None) and mask & here for each, mask in pairs)
        if outside and inside and group.agree.sure:
            told.add(id(event.node))
            yield Hit(
                event.node,
                f"ranks outside of the group give {event.name}() None, which means all ranks",
                why=group.why,
                help="let only the ranks of the group call it",
                path=event.path,
            )
