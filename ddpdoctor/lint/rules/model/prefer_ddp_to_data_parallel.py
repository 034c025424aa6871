"""DataParallel under a launcher.

## What it does
Finds `nn.DataParallel` in a script that joins a process group and never uses DDP.

## Why is this bad?
Each of the N processes drives all devices, one thread per device, without ever reducing over
processes.

## Example
```python
dist.init_process_group("nccl")
model = nn.DataParallel(net)
```

## Use instead
```python
dist.init_process_group("nccl")
model = DDP(net, device_ids=[local_rank])
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP319"
NAME = "data-parallel"
CONFIDENCE: Confidence = "likely"
WORDS = ("DataParallel",)
ALSO = ("init_process_group",)


_DATA_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")


def check(module: Module) -> Iterator[Hit]:
    """Yield DataParallel where a process group exists."""
    if module.wraps or "torch.distributed.init_process_group" not in module.by_name:
        return
    for call in module.calls_of(*_DATA_PARALLEL):
        yield Hit(
            call,
            "nn.DataParallel in a script that joins a process group: nothing reduces over ranks",
            help="DistributedDataParallel(model, device_ids=[local_rank])",
        )
