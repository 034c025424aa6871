"""Read of a file, or use of a folder, that rank 0 has not made yet.

## What it does
Finds a file of data (no checkpoint) that one rank writes and every rank loads later, files of all
ranks that one of them reads, and a folder that one rank makes and others write into, list or rely
on, with no collective in between.

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
from ddpdoctor.lint.engine.queries.races import early_looks, gatherings, races, rushes
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP407", name="missing-wait", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield loads and writes that come before another rank has written, or made the folder."""
    for race in races(run):
        if not race.of_state:
            yield Hit(
                race.node,
                "ranks load this file, which another rank may not have written yet",
                notes=race.notes,
                help="a barrier (or a shared outcome) between the write and the read",
                confidence="certain" if race.sure else "likely",
                path=race.path,
            )
    for early in gatherings(run):
        yield Hit(
            early.node,
            "this reads what other ranks write, which may not be there yet",
            notes=(early.by,),
            help="a barrier between the writes and the reads; or all_gather_object, without files",
            confidence="likely",
            path=early.path,
        )
    for rush in rushes(run):
        yield Hit(
            rush.node,
            "ranks write into this folder, which another rank may not have made yet",
            notes=(rush.by,),
            help="a barrier between, or os.makedirs(..., exist_ok=True) on every rank",
            confidence="certain" if rush.sure else "likely",
            path=rush.path,
        )
    for look in early_looks(run):
        yield Hit(
            look.node,
            "ranks look into this folder, which another rank may not have made yet",
            notes=(look.by,),
            help="a barrier between, or os.makedirs(..., exist_ok=True) on every rank",
            confidence="certain" if look.sure else "likely",
            path=look.path,
        )
