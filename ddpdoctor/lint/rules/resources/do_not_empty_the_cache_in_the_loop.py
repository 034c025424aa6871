"""empty_cache in the step loop.

## What it does
Finds `torch.cuda.empty_cache()` in a loop that trains.

## Why is this bad?
Live tensors stay where they are; what is freed must be asked of the driver again at the next step,
which synchronises the device. Steps get slower, the leak stays.

## Example
```python
for batch in loader:
    train_step(batch)
    torch.cuda.empty_cache()
```

## Use instead
```python
for batch in loader:
    train_step(batch)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP602"
NAME = "empty-cache-as-cure"
CONFIDENCE: Confidence = "likely"
WORDS = ("empty_cache",)
ALSO = ("distributed", "Distributed", "accelerate")


def check(module: Module) -> Iterator[Hit]:
    """Yield empty_cache calls between training steps."""
    if not module.is_distributed:
        return
    trained = [loop for call in module.method_calls("backward") for loop in module.loops(call)[:1]]
    for call in module.calls_of("torch.cuda.empty_cache"):
        loops = module.loops(call)
        rare = any(
            isinstance(each, ast.If | ast.ExceptHandler) and loops and module.inside(each, loops[0])
            for each in module.ancestors(call)
        )
        if loops and loops[0] in trained and not rare:
            yield Hit(
                call,
                "empty_cache() in every step slows training and frees nothing that is in use",
                help="remove it, and the reference that keeps the memory",
            )
