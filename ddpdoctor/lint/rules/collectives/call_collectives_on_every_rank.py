"""Collective under a rank condition.

## What it does
Finds collectives (`barrier`, `all_reduce`, `broadcast`, ...) that only some ranks reach: under `if
rank == 0:`, in one arm of a conditional, after a `return`, `raise` or `continue` that only some
ranks take, also where the collective stands in a function that is called there.

## Why is this bad?
A collective waits for every rank of its group. The ranks that reach it wait for those that do not,
until the timeout (30 minutes for gloo, 10 for NCCL): the job hangs, at full price.

## Example
```python
if rank == 0:
    save(model)
    dist.barrier()
```

## Use instead
```python
if rank == 0:
    save(model)
dist.barrier()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.naming import is_decided
from ddpdoctor.lint.engine.queries.partings import Met, Parting, partings
from ddpdoctor.lint.engine.queries.telling import (
    chain,
    decision,
    filled_by_some,
    how,
    operation,
    where,
    who,
)
from ddpdoctor.lint.rule import About, Confidence, Hit

ABOUT = About(code="DDP401", name="rank-conditional-collective", confidence="certain")

_HEARD = ("collective", "wrap", "backward")


def check(run: Run) -> Iterator[Hit]:
    """Yield the collectives that only some ranks reach."""
    for parting in partings(run):
        filled = filled_by_some(parting)
        if not parting.by_rank or parting.left == "end" or parting.instead is not None:
            continue
        if parting.repeats and (filled is None or is_decided(parting)):
            continue
        heard = [each for each in parting.met if each.event.kind in _HEARD]
        if filled:  # what else is done with a thing may be for those ranks
            heard = [each for each in heard if each.event.kind == "collective"]
        if parting.left or filled:
            heard = heard[:1]
        for each in heard:
            node, path = decision(run, parting) if filled else where(parting, each)
            yield Hit(
                node,
                f"{operation(each)} is reached by {who(parting)}: the other ranks never join it",
                notes=(how(parting), *chain(each)),
                why=parting.why,
                help="let every rank call it: move it out of the condition",
                confidence=_confidence(parting, each),
                path=path,
            )


def _confidence(parting: Parting, met: Met) -> Confidence:
    return "certain" if parting.sure and met.sure else "likely"
