"""A port that each rank picks for itself.

## What it does
Finds a MASTER_PORT that each rank chooses by itself (a free one of this machine) before it joins
the process group.

## Why is this bad?
Ranks find each other at one address and port. Each waits at its own, and they never meet.

## Example
```python
def worker(rank, world_size):
    os.environ["MASTER_PORT"] = str(find_free_port())
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
```

## Use instead
```python
os.environ["MASTER_PORT"] = str(find_free_port())
mp.spawn(worker, args=(world_size,), nprocs=world_size)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Const, Term, Value, within
from ddpdoctor.lint.engine.queries.doing import doers, is_a_default
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP118", name="ranks-meet-nowhere", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield ports that each rank picks by itself."""
    starts = {id(event.node) for event, _ in events(run.root, "spawn")}
    picked: tuple[Event, Way] | None = None
    is_one_process = False
    for event, way in events(run.root, "setenv", "init"):
        if event.kind == "setenv":
            value = event.values["value"]
            if event.values["name"].is_const("MASTER_PORT"):
                several = doers(way).mask.bit_count() > 1 and not _is_alone(event, way, starts)
                picked = (event, way) if _is_its_own(value) and several else None
            elif event.values["name"].is_const("RANK"):
                is_one_process = isinstance(value.what, Const)
            continue
        if _ends_in_its_own(event.values.get("method", NONE)) and doers(way).mask.bit_count() > 1:
            picked = event, way
        if picked is not None and event.values.get("store") is None:
            by, before = picked
            rank = event.values.get("rank")
            if is_one_process:
                continue  # whoever runs this is rank 0 of a job of its own
            if _process(before, starts) != _process(way, starts):
                continue  # picked once, where the ranks are started, which inherit it
            if rank is None or not isinstance(rank.constant, int):
                yield Hit(
                    by.node,
                    "each rank picks a port by itself, and waits there for the others",
                    notes=(Related.at(event.place, "the group is joined"),),
                    help="pick it once, in the process that starts the ranks, and hand it to them",
                    path=by.path,
                )


def _is_its_own(port: Value) -> bool:
    """Whether the process picks it, whichever way it goes: others may have it from a launcher."""
    joined = (each for each in within(port.what) if isinstance(each, Term) and each.op == "joined")
    return port.agree.kind == "local" and not any(joined)


def _ends_in_its_own(address: Value) -> bool:
    """Whether the port of an address, or a file, is such: two processes of a host have one name."""
    what = address.what
    end = what.args[-1] if isinstance(what, Term) and what.op == "text" else NONE.what
    picked = (each for each in within(end) if isinstance(each, Term) and each.op in _PICKED)
    return _is_its_own(address) and any(picked)


_PICKED = ("local", "drawn")


def _is_alone(event: Event, way: Way, starts: set[int]) -> bool:
    """Whether it is picked where none is set: whoever starts several processes sets one."""
    if _process(way, starts):
        return False  # those that the program has started have what it gave them
    return is_a_default(event, way)


def _process(way: Way, starts: set[int]) -> list[int]:
    """The starts of processes that lead to the end of a way."""
    calls = (step.node for step in way if isinstance(step.node, Called))
    return [id(each.node) for each in calls if id(each.node) in starts]
