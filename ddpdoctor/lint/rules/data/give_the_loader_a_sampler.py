"""Training loader without a sampler.

## What it does
Finds a `DataLoader` without a sampler whose batches feed the backward of a DDP model in the same
function.

## Why is this bad?
Every rank reads the whole set: N times the work for no speed-up, and where the order is shared, N
identical gradients.

## Example
```python
loader = DataLoader(data, batch_size=32, shuffle=True)
for batch in loader:
    ddp_model(batch).sum().backward()
```

## Use instead
```python
loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, has_star, keyword, targets, text
from ddpdoctor.lint.engine.vocabulary import LOADER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP202"
NAME = "no-sampler"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)


_GIVEN = ("sampler", "batch_sampler")
_SHARDED = re.compile(r"rank|shard|iterable|stream|subset|split|replica|local|partition", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield training loaders that every rank reads in full."""
    if not module.wraps or "prepare" in module.by_method:
        return
    for call in module.calls_of(*LOADER):
        if not call.args or has_star(call) or any(keyword(call, each) for each in _GIVEN):
            continue
        bound = [dotted(target) for target in targets(module.statement(call))]
        if len(bound) != 1 or not _feeds_backward(module, call, bound[0]):
            continue
        data = call.args[0]
        values = [value for _, value in module.bindings(data, dotted(data))] or [data]
        if any(_SHARDED.search(text(each, 500)) for each in (data, *values)):
            continue
        if len(call.args) > 3 or (keyword(call, "collate_fn") and "rank" in text(call, 500)):
            continue
        yield Hit(
            call,
            "every rank reads the whole dataset: this training loader has no sampler",
            help="sampler=DistributedSampler(dataset), and set_epoch in the loop",
        )


def _feeds_backward(module: Module, call: ast.Call, name: str) -> bool:
    for loop in module.by_kind[ast.For]:
        assert isinstance(loop, ast.For)
        if not any(dotted(each) == name for each in ast.walk(loop.iter)):
            continue
        if module.scope(loop) is not module.scope(call):
            continue
        if any(module.inside(each, loop) for each in module.method_calls("backward")):
            return True
    return False
