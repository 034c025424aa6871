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

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP115"
NAME = "lone-copies"
CONFIDENCE: Confidence = "likely"
WORDS = ("is_initialized",)
ALSO = ("DistributedDataParallel",)

_JOINS = re.compile(r"init_process_group|init_device_mesh|Accelerator\(|Fabric\(|deepspeed|horovod")


def check(module: Module) -> Iterator[Hit]:
    """Yield the question whose answer is always no."""
    if not module.wraps or not module.stands_alone or _JOINS.search(module.text):
        return
    for call in module.calls_of("torch.distributed.is_initialized")[:1]:
        yield Hit(
            call,
            "nothing in this script joins a process group: this is always False",
            notes=("a launcher starts the processes, but does not join them",),
            help="init_process_group() first, where the launcher has set RANK",
        )
