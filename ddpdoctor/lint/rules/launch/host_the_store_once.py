"""A store that every rank wants to host, a port that each picks for itself.

## What it does
Finds `TCPStore(..., is_master=True)` that every rank builds and then joins the process group with,
and a MASTER_PORT that each rank chooses by itself (a free one of this machine) before it joins.

## Why is this bad?
One process can listen on the port. The others get EADDRINUSE; on several machines each rank joins
a group of its own, as it does where each has picked its own port: they never meet.

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
    """Yield stores of which every rank is the master, and ports that each rank picks by itself."""
    stores: dict[int, Event] = {}
    picked: Event | None = None
    for event, way in events(run.root, "new", "setenv", "init"):
        several = doers(way).mask.bit_count() > 1
        if event.kind == "new":
            master = event.values.get("is_master")
            if event.name.endswith(".TCPStore") and master is not None and master.is_const(True):
                stores |= dict.fromkeys(
                    numbers(event.values.get("object")) if several else (), event
                )
        elif event.kind == "setenv":
            if event.values["name"].is_const("MASTER_PORT"):
                mine = event.values["value"].agree.kind == "local" and several
                picked = event if mine else None
        elif (rank := event.values.get("rank")) is None or not isinstance(rank.constant, int):
            yield from _joined(event, stores, picked)


def _joined(init: Event, stores: dict[int, Event], picked: Event | None) -> Iterator[Hit]:
    store = init.values.get("store")
    for number in numbers(store) & stores.keys():
        yield Hit(
            stores[number].node,
            "every rank hosts the store: only the first can listen on the port",
            help="is_master=rank == 0",
            path=stores[number].path,
        )
    if store is None and picked is not None:
        yield Hit(
            picked.node,
            "each rank picks a port by itself, and waits there for the others",
            notes=(f"the group is joined at line {init.place.line}",),
            help="pick it once, in the process that starts the ranks, and hand it to them",
            path=picked.path,
        )
