"""The batch of one rank taken for that of all, or the reverse.

## What it does
Finds loaders whose `batch_size` is called global although each rank has its own loader; and scripts
that divide the batch size by the number of ranks and multiply the learning rate by it.

## Why is this bad?
N ranks with the global batch each make a batch that is N times as large, and N times fewer steps.
Where the batch is divided, the global batch is the one that was given, and a learning rate times N
is N times what belongs to it.

## Example
```python
loader = DataLoader(data, batch_size=batch_size // world_size, sampler=sampler)
optimizer = SGD(model.parameters(), lr=lr * world_size)
```

## Use instead
```python
loader = DataLoader(data, batch_size=batch_size // world_size, sampler=sampler)
optimizer = SGD(model.parameters(), lr=lr)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, keyword, text
from ddpdoctor.lint.engine.vocabulary import LOADER, OPTIMIZERS
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP211"
NAME = "batch-size-meaning"
CONFIDENCE: Confidence = "likely"
WORDS = ("batch_size", "DataLoader")
ALSO = ("DistributedDataParallel", "DistributedSampler")

_GLOBAL = re.compile(r"(^|_)(global|total|effective)_?batch", re.I)
_RANKS = re.compile(r"world_?size|num_(gpus|replicas|processes)|n_?gpus", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield batches and learning rates that are counted once too often."""
    for call in module.calls_of(*LOADER):
        size = argument(call, 1, "batch_size")
        if size is not None and _GLOBAL.search(dotted(size)) and keyword(call, "sampler"):
            yield Hit(
                size,
                f"`{text(size)}` is given to the loader of each rank: the global batch is larger",
                help="divide it by the number of ranks",
            )
    divided = [
        call
        for call in module.calls_of(*LOADER)
        if (size := argument(call, 1, "batch_size")) is not None
        and _by_ranks(module, size, ast.FloorDiv | ast.Div)
    ]
    for call, name in module.names.items():
        rate = argument(call, 1, "lr") if OPTIMIZERS.match(name) else None
        here = [each for each in divided if module.scope(each) is module.scope(call)]
        if here and rate is not None and _by_ranks(module, rate, ast.Mult):
            yield Hit(
                rate,
                "the learning rate is multiplied by the number of ranks, the batch divided by it",
                notes=(f"the batch is divided at line {here[0].lineno}",),
                help="scale the learning rate by the global batch alone",
            )


def _by_ranks(module: Module, node: ast.expr, operators: object) -> bool:
    return any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, operators)  # type: ignore[arg-type]
        and bool(_RANKS.search(f"{text(part.right)} {text(part.left)}"))
        for part in ast.walk(module.value(node) or node)
    )
