"""cpu_count for every rank's workers.

## What it does
Finds `DataLoader(num_workers=os.cpu_count())` in distributed code.

## Why is this bad?
Every rank on the machine starts as many workers as there are cores, and `cpu_count` ignores
affinity and cgroup limits: 8 ranks on 64 cores start 512 processes.

## Example
```python
DataLoader(data, num_workers=os.cpu_count())
```

## Use instead
```python
DataLoader(data, num_workers=len(os.sched_getaffinity(0)) // local_world_size)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.values import NONE, Term
from ddpdoctor.lint.engine.queries.doing import is_of_one_process
from ddpdoctor.lint.engine.queries.sharding import LOADER, made, of_many_ranks
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP603", name="thread-oversubscription", confidence="likely")

_COUNTS = ("os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count")


def check(run: Run) -> Iterator[Hit]:
    """Yield worker counts that each rank takes for itself."""
    if not of_many_ranks(run) or is_of_one_process(run):
        return
    for event in made(run, LOADER).values():
        if not _counts_the_machine(event.values.get("num_workers", NONE).what):
            continue
        written = None
        if isinstance(event.node, ast.Call):
            written = argument(event.node, 5, "num_workers")
        yield Hit(
            written or event.node,
            "every rank starts as many workers as the machine has cores",
            help="divide the cores of this process by the number of local ranks",
            path=event.path,
        )


def _counts_the_machine(what: object) -> bool:
    """Whether this is the number of cores, or that number if it is known and another if not."""
    if not isinstance(what, Term):
        return False
    if what.op == "or":
        return _counts_the_machine(what.args[0])
    return what.op == "lib" and what.args[0] in _COUNTS
