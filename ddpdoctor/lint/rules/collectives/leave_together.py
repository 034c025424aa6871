"""Rank 0 leaves while the others go on.

## What it does
Finds `sys.exit()` that the main rank reaches alone, in a loop that trains or runs collectives.

## Why is this bad?
The others wait in their next collective for a process that has ended well: the launcher sees no
failure, and on torchrun the store's host is gone.

## Example
```python
if rank == 0 and loss < target:
    sys.exit(0)
```

## Use instead
```python
done = torch.tensor(float(loss < target))
dist.broadcast(done, src=0)
if done:
    break
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.partings import partings
from ddpdoctor.lint.engine.queries.telling import how
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP410", name="early-exit", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield exits of one rank from what all ranks must run alike."""
    for parting in partings(run):
        if not parting.by_rank or parting.left != "end" or parting.exit is None:
            continue
        if parting.exit.is_failure:
            continue
        node: ast.AST = parting.exit.node
        yield Hit(
            node,
            "this rank leaves alone: the others wait for it in their next collective",
            notes=(how(parting),),
            why=parting.why,
            help="share the decision (broadcast it), and leave on every rank",
            path=parting.exit.path,
        )
