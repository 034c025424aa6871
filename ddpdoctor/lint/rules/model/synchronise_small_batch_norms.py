"""Batch statistics of a handful of samples.

## What it does
Finds models with BatchNorm that are wrapped in DDP without `convert_sync_batchnorm`, in files whose
batch on each rank is four samples or fewer.

## Why is this bad?
DDP averages gradients; each rank normalises by the mean and variance of its own few samples, and
rank 0's running statistics win. The model is not the one that a single process trains.

## Example
```python
model = DDP(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)))
loader = DataLoader(data, batch_size=2, sampler=sampler)
```

## Use instead
```python
net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
model = DDP(net)
loader = DataLoader(data, batch_size=2, sampler=sampler)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.models import built_from
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, last_name
from ddpdoctor.lint.engine.vocabulary import LOADER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP312"
NAME = "unsynchronised-batchnorm"
CONFIDENCE: Confidence = "likely"
WORDS = ("BatchNorm",)
ALSO = ("DistributedDataParallel",)

_FEW = 4
_NORM = re.compile(r"^(Lazy)?BatchNorm\dd$")
_BATCH = re.compile(r"^(batch|batch_?size|per_rank(_batch)?)$", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield wraps of models that normalise by few samples."""
    for call in module.wraps:
        model = argument(call, 0, "module")
        few = _few(module, call)
        if model is None or few is None:
            continue
        names = {
            last_name(node.func)
            for part in built_from(module, model)
            for node in module.within(part)
            if isinstance(node, ast.Call)
        }
        if any(_NORM.match(name) for name in names) and "convert_sync_batchnorm" not in names:
            yield Hit(
                call,
                "BatchNorm normalises by the few samples of each rank: nothing synchronises it",
                notes=(f"the batch of a rank is set at line {few.lineno}",),
                help="nn.SyncBatchNorm.convert_sync_batchnorm(net) before the wrap",
            )


def _few(module: Module, wrap: ast.Call) -> ast.Constant | None:
    """The constant, of this function or of the module, that says how few samples a rank has."""
    near = (module.scope(wrap), module.tree)
    found: list[ast.expr | None] = [
        module.value(argument(call, 1, "batch_size"))
        for call in module.calls_of(*LOADER)
        if module.scope(call) in near
    ]
    found += [
        node.value
        for node in module.by_kind[ast.Assign]
        if isinstance(node, ast.Assign)
        and module.scope(node) in near
        and any(_BATCH.match(dotted(target)) for target in node.targets)
    ]
    for each in found:
        if isinstance(each, ast.Constant) and isinstance(each.value, int) and each.value <= _FEW:
            return each
    return None
