"""Read of a file that rank 0 has not written yet.

## What it does
Finds a file of data (no checkpoint) that one rank writes and every rank loads later in the same
function, with no collective in between.

## Why is this bad?
The other ranks arrive first: FileNotFoundError on them, or half a file.

## Example
```python
if rank == 0:
    torch.save(statistics, cache)
statistics = torch.load(cache)
```

## Use instead
```python
if rank == 0:
    torch.save(statistics, cache)
dist.barrier()
statistics = torch.load(cache)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.races import races
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP407", name="missing-wait", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield loads that come before another rank has written."""
    for race in races(run):
        if not race.of_state:
            yield Hit(
                race.node,
                "ranks load this file, which another rank may not have written yet",
                notes=(race.note,),
                help="a barrier (or a shared outcome) between the write and the read",
                confidence="certain" if race.sure else "likely",
                path=race.path,
            )
