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

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.engine.vocabulary import LOADER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP603"
NAME = "thread-oversubscription"
CONFIDENCE: Confidence = "likely"
WORDS = ("cpu_count",)
ALSO = ("distributed", "Distributed", "accelerate")


_COUNTS = ("os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count")


def check(module: Module) -> Iterator[Hit]:
    """Yield worker counts that each rank takes for itself."""
    if not module.is_distributed:
        return
    for call in module.calls_of(*LOADER):
        workers = argument(call, 5, "num_workers")
        value = module.value(workers) if workers is not None else None
        if isinstance(value, ast.BoolOp):
            value = value.values[0]
        if isinstance(value, ast.Call) and module.names.get(value) in _COUNTS:
            yield Hit(
                workers or call,
                "every rank starts as many workers as the machine has cores",
                help="divide the cores of this process by the number of local ranks",
            )
