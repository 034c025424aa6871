"""More ranks expected than started.

## What it does
Finds `mp.spawn(..., nprocs=2)` beside `init_process_group(..., world_size=4)`: two numbers for one
thing.

## Why is this bad?
The rendezvous waits for ranks that nobody starts: "2/4 clients joined", after the timeout.

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

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.trees import argument, dotted, keyword, last_name
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP105"
NAME = "wrong-world-size"
CONFIDENCE: Confidence = "certain"
WORDS = ("nprocs",)
ALSO = ("world_size",)

_SPAWN = ("torch.multiprocessing.spawn", "torch.multiprocessing.spawn.spawn")


def check(module: Module) -> Iterator[Hit]:
    """Yield groups that expect another number of ranks than is spawned."""
    for spawn in module.calls_of(*_SPAWN):
        started = _number(module, argument(spawn, 2, "nprocs"))
        target = last_name(spawn.args[0]) if spawn.args else ""
        for call in module.calls_of("torch.distributed.init_process_group"):
            function = module.function(call)
            if function is None or function.name != target:
                continue
            if dotted(keyword(call, "rank") or call) not in params(function)[:1]:
                continue  # of several machines, whose ranks are counted on
            expected = _number(module, keyword(call, "world_size"))
            if started is not None and expected is not None and started < expected:
                yield Hit(
                    call,
                    f"{expected} ranks are expected, {started} are started: all wait for the rest",
                    notes=(f"spawned at line {spawn.lineno}",),
                    help="one number for both: hand the world size to the workers",
                )


def _number(module: Module, node: ast.expr | None) -> int | None:
    value = module.value(node)
    is_number = isinstance(value, ast.Constant) and type(value.value) is int
    return value.value if is_number else None  # type: ignore[union-attr]
