"""A script that waits to be distributed, and never joins.

## What it does
Finds a script that asks `dist.is_initialized()` and wraps in DDP if so, but in which nothing joins
a process group.

## Why is this bad?
torchrun starts N processes and sets RANK; it does not join them. Each believes to be alone: N
copies train on all the data and overwrite each other's files.

## Example
```python
distributed = dist.is_initialized()
model = DDP(net) if distributed else net
```

## Use instead
```python
if "RANK" in os.environ:
    dist.init_process_group("nccl")
distributed = dist.is_initialized()
model = DDP(net) if distributed else net
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP115", name="lone-copies", confidence="likely")

# What joins the group, and calls of helpers that are not there to be read and may.
_JOINS = re.compile(
    r"init_process_group|init_device_mesh|Accelerator\(|Fabric\(|deepspeed|horovod"
    r"|\b(init|setup|join|launch)\w*(dist|ddp|process|rank)|\b(dist|ddp)\w*(init|setup|join)"
)


def check(run: Run) -> Iterator[Hit]:
    """Yield the question whose answer is always no."""
    if not run.is_entry or any(True for _ in events(run.root, "init", "spawn")):
        return
    asked = next((event for event, _ in events(run.root, "ask")), None)
    if asked is None or not any(True for _ in events(run.root, "wrap")):
        return
    if asked.path != run.path and not any(True for _ in events(run.root, "backward")):
        return  # one process, which uses what a script that trains does
    sources = [run.source(path) for path in sorted(run.vm.files)]
    if not any(_JOINS.search(each.source.text) for each in sources if each is not None):
        yield Hit(
            asked.node,
            "nothing in this script joins a process group: this is always False",
            notes=("a launcher starts the processes, but does not join them",),
            help="init_process_group() first, where the launcher has set RANK",
            path=asked.path,
        )
