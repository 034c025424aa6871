"""Ranks that start ranks.

## What it does
Finds code that reads LOCAL_RANK or LOCAL_WORLD_SIZE, which a launcher sets for each process of a
machine, and then calls `mp.spawn` without asking whether a launcher is there.

## Why is this bad?
torchrun starts N processes, and each of them starts N more: N times N processes fight for the
devices and the port, or N groups train beside each other and overwrite each other's files.

## Example
```python
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mp.spawn(worker, nprocs=torch.cuda.device_count())
```

## Use instead
```python
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
worker(int(os.environ["LOCAL_RANK"]))  # torchrun starts all of them
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import text
from ddpdoctor.lint.engine.queries.order import is_sure
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP114", name="double-launch", confidence="likely")

# RANK and WORLD_SIZE may be those of the machines, of which each spawns its ranks.
_LAUNCHED = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")


def check(run: Run) -> Iterator[Hit]:
    """Yield spawns by a process that a launcher has started."""
    needed: Event | None = None
    for event, way in events(run.root, "getenv", "spawn"):
        if not is_sure(way):
            continue
        if event.kind == "getenv":
            # `os.environ["LOCAL_RANK"]` raises where there is no launcher.
            is_needed = event.name == "os.environ" and event.values["name"].is_const(*_LAUNCHED)
            needed = needed or (event if is_needed else None)
        elif needed is not None:
            yield Hit(
                event.node,
                "a process that a launcher has started starts ranks of its own",
                notes=(Related.at(needed.place, f"`{text(needed.node, 40)}`: a launcher sets it"),),
                help="one launcher: torchrun, or mp.spawn",
                path=event.path,
            )
            return
        else:
            return  # what follows is what the ranks do
