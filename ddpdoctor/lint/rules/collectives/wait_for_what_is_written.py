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

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.races import races
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP407"
NAME = "missing-wait"
CONFIDENCE: Confidence = "certain"
FACTS = ("load",)


def check(module: Module) -> Iterator[Hit]:
    """Yield loads that come before another rank has written."""
    for race in races(module):
        if not race.of_state:
            yield Hit(
                race.load,
                "ranks load this file, which another rank may not have written yet",
                notes=race.notes,
                help="a barrier (or a shared outcome) between the write and the read",
                confidence=None if race.sure else "likely",
            )
