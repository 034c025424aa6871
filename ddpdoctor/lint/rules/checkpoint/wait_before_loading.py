"""Load of what another rank is still writing.

## What it does
Finds a file that one rank writes and others load later, with nothing in between that all ranks
wait for, in one function or across several.

## Why is this bad?
The other ranks arrive first and read half a file: "failed finding central directory", EOFError,
and a dozen other faces of the same race; or they find the file of an earlier epoch, or none.

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

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.races import races
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP501", name="checkpoint-race", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield loads that race with the save of another rank."""
    for race in races(run):
        if race.of_state:
            yield Hit(
                race.node,
                "ranks load this file while another rank may still be writing it",
                notes=race.notes,
                help="a barrier (or a shared outcome) between the save and the load",
                confidence="certain" if race.sure else "likely",
                path=race.path,
            )
