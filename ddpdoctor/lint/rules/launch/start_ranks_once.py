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

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import environment_name
from ddpdoctor.lint.engine.trees import text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP114"
NAME = "double-launch"
CONFIDENCE: Confidence = "likely"
WORDS = ("spawn",)
ALSO = ("LOCAL_",)

_SPAWN = ("torch.multiprocessing.spawn", "torch.multiprocessing.spawn.spawn")
# RANK and WORLD_SIZE may be those of the machines, of which each spawns its ranks.
_LAUNCHED = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")


def check(module: Module) -> Iterator[Hit]:
    """Yield spawns by a process that a launcher has started."""
    for call in module.calls_of(*_SPAWN):
        scope = module.scope(call)
        asked = " ".join(text(each.test, 200) for each in guards(module, call))
        if any(name in asked for name in ("environ", "RANK", "launch", "torchrun", "WORLD")):
            continue
        reads = [
            node
            for node in module.by_kind[ast.Subscript]
            if isinstance(node, ast.Subscript)
            and module.scope(node) is scope
            and node.lineno <= call.lineno
            and _is_needed(module, node)
        ]
        if reads:
            yield Hit(
                call,
                "a process that a launcher has started starts ranks of its own",
                notes=(f"`{text(reads[0], 40)}` (line {reads[0].lineno}) is set by a launcher",),
                help="one launcher: torchrun, or mp.spawn",
            )


def _is_needed(module: Module, node: ast.expr) -> bool:
    """`os.environ["LOCAL_RANK"]` without a condition: it raises where there is no launcher."""
    is_read = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
    if not is_read or environment_name(module, node) not in _LAUNCHED:
        return False
    return all("__name__" in text(each.test) for each in guards(module, node))
