"""More ranks expected than started.

## What it does
Finds `mp.spawn(..., nprocs=2)` beside `init_process_group(..., world_size=4)`: two numbers for one
thing. And the same by the defaults of a script's options, where the ranks meet at an address of
this host alone. And `init_process_group(world_size=4)` without a rank: who a rank is comes from the
launcher then, how many there are does not.

## Why is this bad?
The rendezvous waits for ranks that nobody starts: "2/4 clients joined", after the timeout. Where
more are started than are expected, the others fail: their rank is none of this group.

## Example
```python
dist.init_process_group("gloo", rank=rank, world_size=4)
mp.spawn(worker, nprocs=2)
```

## Use instead
```python
mp.spawn(worker, args=(world_size,), nprocs=world_size)
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ddpdoctor.lint.engine.interpreter.folding import in_round
from ddpdoctor.lint.engine.interpreter.objects.members import default
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Step, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    OPEN,
    RANK,
    WORLD,
    Table,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP105", name="wrong-world-size", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield groups that expect another number of ranks than is spawned."""
    for init, way in events(run.root, "init"):
        spawn = next((found for step in way if (found := _spawn_of(step)) is not None), None)
        rank = init.values.get("rank")
        if spawn is None and rank is None:
            yield from _beside_the_launcher(run, init)
        if spawn is None or rank is None:
            continue
        if _meets_here(run, init):
            yield from _by_default(run, init, spawn)
        if rank.what != RANK or _is_counted_on(rank):
            continue  # of several machines, whose ranks are counted on
        started, expected = _number(spawn, "processes"), _number(init, "size")
        if started is not None and expected is not None and started < expected:
            yield Hit(
                init.node,
                f"{expected} ranks are expected, {started} are started: all wait for the rest",
                notes=(Related.at(spawn.place, "they are spawned"),),
                help="one number for both: hand the world size to the workers",
                path=init.path,
            )


def _beside_the_launcher(run: Run, init: Event) -> Iterator[Hit]:
    """A number of ranks that is written down, where the launcher says which rank each is."""
    values = init.values
    size = values.get("size", NONE)
    by_default = default(run.vm, size)
    number = (by_default or size).constant
    meets = values.get("method", NONE).is_const(None, "env://") and "store" not in values
    is_torch = init.name == "init_process_group" and not values.get("backend", NONE).is_const("mpi")
    sets_its_rank = any(e.values["name"].is_const("RANK") for e, _ in events(run.root, "setenv"))
    if type(number) is int and number > 0 and meets and is_torch and not sets_its_rank:
        unless = "unless it is told otherwise, " if by_default is not None else ""
        yield Hit(
            init.node,
            f"{unless}a world of {number} is expected, however many ranks the launcher starts",
            notes=("who a rank is comes from RANK, but WORLD_SIZE is not read",),
            help="leave world_size out: torchrun sets WORLD_SIZE",
            confidence="likely",
            path=init.path,
        )


def _meets_here(run: Run, init: Event) -> bool:
    """Whether ranks meet, unless told otherwise, where none of another host can come."""
    method = init.values.get("method", NONE)
    where = _usually(run, method)
    return isinstance(where, str) and bool(_THIS_HOST.match(where))


_THIS_HOST = re.compile(r"tcp://(localhost|127\.[\d.]+|\[::1\]):")


def _by_default(run: Run, init: Event, spawn: Event) -> Iterator[Hit]:
    size, processes = init.values.get("size", NONE), spawn.values.get("processes", NONE)
    if _number(init, "size") is not None and _number(spawn, "processes") is not None:
        return
    expected, started = _usually(run, size), _usually(run, processes)
    if type(started) is int and type(expected) is int and 0 < started < expected:
        yield Hit(
            init.node,
            f"unless it is told otherwise, {expected} ranks are expected and {started} started: "
            "all wait for the rest",
            notes=(
                Related.at(spawn.place, "they are spawned"),
                "they meet at an address of this host, to which no other host's can come",
            ),
            help="a default of one host, or one number for both",
            confidence="likely",
            path=init.path,
        )


def _usually(run: Run, value: Value) -> Any:
    """What a value is where no option is given, OPEN where that is not known."""
    parts = set(within(value.what))
    if WORLD in parts or any(isinstance(each, Table) for each in parts):
        return OPEN
    known: dict[What, Any] = {
        each: said.constant
        for each in parts
        if isinstance(each, Term) and (said := default(run.vm, Value(each))) is not None
    }
    return in_round(value.what, 0, known)


def _spawn_of(step: Step) -> Event | None:
    """What started the ranks that run this call: this time, where the line starts some again."""
    before = step.seq.items[: step.index] if isinstance(step.node, Called) else []
    started = (each for each in reversed(before) if isinstance(each, Event))
    return next((e for e in started if e.kind == "spawn" and e.node is step.node.node), None)


def _is_counted_on(rank: Value) -> bool:
    """Whether ranks are counted on from those of the hosts before, of which this may be the first.

    Which host it is is written into the script, and another number on each.
    """
    return isinstance(rank.what, Table) and rank.what.is_counted_on


def _number(event: Event, role: str) -> int | None:
    value: Value | None = event.values.get(role)
    found = value.constant if value is not None else None
    return found if type(found) is int else None
