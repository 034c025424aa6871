"""A collective whose root is each rank itself.

## What it does
Finds `broadcast`, `reduce`, `gather` and `scatter` with the calling process's own rank as root.

## Why is this bad?
The root is a property of the call, the same on all ranks. Where each names itself, all send and
none receives: gloo returns at once with everybody's own values, or hangs at the next collective.

## Example
```python
dist.broadcast(mean, src=rank)
```

## Use instead
```python
dist.broadcast(mean, src=0)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import RANK, RANKS, Table, Value
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.words import is_world
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP403", name="collective-shape-mismatch", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield rooted collectives for which the ranks name different roots."""
    for event, way in events(run.root, "collective"):
        root = event.values.get("root")
        if root is None or not is_world(event.values.get("group")):
            continue
        if root.agree.sure and _differs(root, doers(way).mask):
            what = root.what
            whom = "itself" if what == RANK else "another rank"
            yield Hit(
                event.node,
                f"every rank names {whom} as the root of {event.name}(): nobody gets anything",
                help="one root for all ranks, such as 0",
                path=event.path,
            )


def _differs(root: Value, mask: int) -> bool:
    """Whether the ranks that come here name several."""
    if not isinstance(root.what, Table):
        return False
    named = {repr(root.what.entries[rank]) for rank in range(RANKS) if mask & (1 << rank)}
    return len(named) > 1
