"""An error of some ranks that the others do not learn of.

## What it does
Finds code that only rank 0 runs, which looks for a file and raises if it is not there, where all
ranks meet in a collective right after; errors by a rank's own data that are caught around a
collective; uses of what some ranks have and others hold None for, or have no name for; and
the list that `gather` and `scatter` take of the root alone, where every rank gives it.

## Why is this bad?
The others wait for rank 0, which has raised. Under torchrun the job ends after a while; where the
process stays alive (a notebook, an exit hook, a thread) the others wait until their timeout.

## Example
```python
if rank == 0 and not os.path.exists(path):
    raise FileNotFoundError(path)
dist.barrier()
```

## Use instead
```python
missing = [not os.path.exists(path) if rank == 0 else None]
dist.broadcast_object_list(missing, src=0)
if missing[0]:
    raise FileNotFoundError(path)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.raising import (
    caught_errors,
    lone_errors,
    missing_names,
    missing_things,
    unwanted_lists,
)
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP404", name="one-rank-raises", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield errors that one rank raises just before the ranks meet."""
    for error in lone_errors(run):
        yield Hit(
            error.node,
            "one rank alone raises here, and the others wait for it",
            notes=error.notes,
            help="broadcast the outcome, and raise on every rank",
            path=error.path,
        )
    for error in caught_errors(run):
        yield Hit(
            error.node,
            "the rank that has raised goes on from here, and the others wait for it",
            notes=error.notes,
            help="catch it around what raises alone, and let every rank call the collective",
            path=error.path,
        )
    for error in missing_things(run):
        yield Hit(
            error.node,
            "some ranks have None here: they raise, and the others wait for them",
            why=error.why,
            help="ask `is not None` first, or for the rank that has it",
            path=error.path,
        )
    for error in missing_names(run):
        yield Hit(
            error.node,
            "some ranks have given this name no value: they raise, and the others wait for them",
            why=error.why,
            help="give it a value on every rank, or ask for the rank that has it",
            path=error.path,
        )
    for error in unwanted_lists(run):
        yield Hit(
            error.node,
            "this list may be given by the root alone: every other rank raises",
            notes=error.notes,
            help="None on the other ranks",
            path=error.path,
        )
