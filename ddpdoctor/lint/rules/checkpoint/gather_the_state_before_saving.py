"""State of an optimizer that lies in parts on the ranks, taken before it was gathered.

## What it does
Finds `state_dict()` of a `ZeroRedundancyOptimizer` to which no `consolidate_state_dict()` leads.

## Why is this bad?
Each rank has the state of its own part of the parameters. Until all of them have gathered it on
one, `state_dict()` raises, and where that one alone asks for it, the others wait for it in vain.

## Example
```python
if rank == 0:
    torch.save(optimizer.state_dict(), path)
dist.barrier()
```

## Use instead
```python
optimizer.consolidate_state_dict(to=0)
if rank == 0:
    torch.save(optimizer.state_dict(), path)
dist.barrier()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP404", name="one-rank-raises", confidence="likely")

_IN_PARTS = "torch.distributed.optim.ZeroRedundancyOptimizer"


def check(run: Run) -> Iterator[Hit]:
    """Yield states that are asked for before anything has gathered them."""
    asked = [
        made
        for made in run.vm.made.values()
        if made.by == "state_dict" and made.of and run.vm.type_of(made.of[0]) == _IN_PARTS
    ]
    if not asked:
        return
    gathered = min(
        (e.order for e, _ in events(run.root, "collective") if e.name == "consolidate_state_dict"),
        default=None,
    )
    told: set[int] = set()
    for made in asked:
        if (gathered is None or made.order <= gathered) and id(made.node) not in told:
            told.add(id(made.node))
            yield Hit(
                made.node,
                "the state of this optimizer lies in parts on the ranks, and nobody has gathered "
                "it: this raises",
                help="call consolidate_state_dict(to=0) on every rank before",
                path=made.path,
            )
