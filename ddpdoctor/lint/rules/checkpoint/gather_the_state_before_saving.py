"""State of an optimizer that lies in parts on the ranks, taken before it was gathered.

## What it does
Finds `state_dict()` of a `ZeroRedundancyOptimizer` to which no `consolidate_state_dict()` leads, or
one that has gathered it on another rank.

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
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import RANKS, Const, Value
from ddpdoctor.lint.rule import About, Hit, Related

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
    gathered = [e for e, _ in events(run.root, "collective") if e.name == "consolidate_state_dict"]
    told: set[int] = set()
    for made in asked:
        earlier = [each for each in gathered if each.order < made.order]
        if id(made.node) in told or any(_has(each, made.mask) for each in earlier):
            continue
        told.add(id(made.node))
        if not earlier:
            yield Hit(
                made.node,
                "the state of this optimizer lies in parts on the ranks, and nobody has gathered "
                "it: this raises",
                help="call consolidate_state_dict(to=0) on every rank before",
                path=made.path,
            )
            continue
        last = earlier[-1]
        yield Hit(
            made.node,
            "the state of this optimizer has been gathered on another rank: this raises",
            notes=(Related.at(last.place, f"it is gathered on rank {_to(last).constant}"),),
            help="consolidate_state_dict(to=...) on every rank, with the rank that saves",
            path=made.path,
        )


def _to(gathering: Event) -> Value:
    return gathering.values.get("to", Value(Const(0)))


def _has(gathering: Event, mask: int) -> bool:
    """Whether any of these ranks has the state by then, or may have it."""
    to = _to(gathering).constant
    return not isinstance(to, int) or bool(mask & (1 << to % RANKS))
