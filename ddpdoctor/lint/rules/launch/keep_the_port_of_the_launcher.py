"""MASTER_PORT of the launcher overwritten.

## What it does
Finds programs that have their rank from the launcher, and set MASTER_PORT to a number of their own
before they join the process group.

## Why is this bad?
torchrun listens itself, at the port that it has told the ranks, and tells them not to. At another
port nobody listens: all ranks wait there until the time limit.

## Example
```python
os.environ["MASTER_PORT"] = "29987"
dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=world_size)
```

## Use instead
```python
os.environ.setdefault("MASTER_PORT", "29987")
dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=world_size)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.queries.launching import overridden
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP118", name="ranks-meet-nowhere", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield ports that are put in place of the launcher's."""
    for event, join in overridden(run) if run.is_entry else ():
        yield Hit(
            event.node,
            "torchrun listens at the port that it has chosen: at this one nobody does",
            notes=(Related.at(join.place, "all ranks wait here"),),
            help="set it only where it is not set: os.environ.setdefault()",
            path=event.path,
        )
