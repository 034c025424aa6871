"""Load of what rank 0 is still writing.

## What it does
Finds a file that one rank writes and every rank loads later in the same function, with no
collective in between.

## Why is this bad?
The other ranks arrive first and read half a file: "failed finding central directory", EOFError,
and a dozen other faces of the same race.

## Example
```python
if rank == 0:
    torch.save(state, path)
state = torch.load(path)
```

## Use instead
```python
if rank == 0:
    torch.save(state, path)
dist.barrier()
state = torch.load(path)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.races import races
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP501"
NAME = "checkpoint-race"
CONFIDENCE: Confidence = "certain"
FACTS = ("load",)


def check(module: Module) -> Iterator[Hit]:
    """Yield loads that race with the save of another rank."""
    for race in races(module):
        if race.of_state:
            yield Hit(
                race.load,
                "ranks load this file while another rank may still be writing it",
                notes=race.notes,
                help="a barrier (or a shared outcome) between the save and the load",
                confidence=None if race.sure else "likely",
            )
