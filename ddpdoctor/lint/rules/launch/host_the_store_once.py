"""A store that every rank wants to host.

## What it does
Finds `TCPStore(..., is_master=True)` that every rank builds and then joins the process group with.

## Why is this bad?
One process can listen on the port. The others get EADDRINUSE; on several machines each rank joins
a group of its own.

## Example
```python
store = dist.TCPStore(host, port, world_size, is_master=True)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
```

## Use instead
```python
store = dist.TCPStore(host, port, world_size, is_master=rank == 0)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.sharding import numbers
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP104", name="port-in-use", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield stores of which every rank is the master."""
    stores: dict[int, Event] = {}
    for event, way in events(run.root, "new", "init"):
        if event.kind == "new":
            master = event.values.get("is_master")
            if event.name.endswith(".TCPStore") and master is not None and master.is_const(True):
                several = doers(way).mask.bit_count() > 1
                stores |= dict.fromkeys(
                    numbers(event.values.get("object")) if several else (), event
                )
        elif (rank := event.values.get("rank")) is None or not isinstance(rank.constant, int):
            for number in numbers(event.values.get("store")) & stores.keys():
                yield Hit(
                    stores[number].node,
                    "every rank hosts the store: only the first can listen on the port",
                    help="is_master=rank == 0",
                    path=stores[number].path,
                )
