"""Collective at exit.

## What it does
Finds functions registered with `atexit` that run a collective.

## Why is this bad?
A rank that crashes runs its exit hooks: the barrier there waits for peers that are still training
(or pairs with a barrier of theirs). The crashed rank stays alive until the timeout, and its error
is seen last.

## Example
```python
atexit.register(dist.barrier)
```

## Use instead
```python
atexit.register(dist.destroy_process_group)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.queries.doing import is_distributed
from ddpdoctor.lint.engine.queries.partings import met
from ddpdoctor.lint.engine.queries.telling import chain, operation
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP409", name="atexit-barrier", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield what is registered with atexit and leads to a collective."""
    is_imported = run.path in (run.vm.program.imported_files or ())  # by what may well join
    is_alone = run.is_entry and not is_imported and not is_distributed(run)
    for event, _ in events(run.root, "at_exit"):
        later = run.vm.exits.get(event)
        if later is None or (is_alone and any(events(later, "ask"))):
            continue  # who asks for a group that nobody has joined meets nobody
        first = next(met(later.items), None)
        if first is not None:
            yield Hit(
                event.node,
                f"{operation(first)} runs at exit: a crashed rank waits there for its peers",
                notes=chain(first),
                help="no collective at exit; destroy the process group where it was made",
                path=event.path,
            )
