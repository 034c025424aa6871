"""Ranks that may run different collectives.

## What it does
Finds an `if` on the values of a tensor, with nothing reduced before it, whose two ways lead to
different collectives.

## Why is this bad?
The tensor differs between ranks, and so does the way they go: one waits in `all_gather`, the other
in `all_reduce`.

## Example
```python
if spread.max() > limit:
    dist.all_reduce(centre)
else:
    dist.all_gather(parts, features)
```

## Use instead
```python
widest = spread.max()
dist.all_reduce(widest, op=dist.ReduceOp.MAX)
if widest > limit:
    dist.all_reduce(centre)
else:
    dist.all_gather(parts, features)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ddpdoctor.lint.engine.divergence import is_shared
from ddpdoctor.lint.engine.guards import leaves
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP402"
NAME = "collective-order-mismatch"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)
FACTS = ("collectives",)

_ASKS = ("max", "min", "any", "all", "sum", "mean", "item", "norm")


def check(module: Module) -> Iterator[Hit]:
    """Yield branches on local values whose arms run different collectives."""
    if not module.wraps:
        return
    for branch in module.ifs:
        if not _asks_a_tensor(module, branch.test):
            continue
        yes, no = _operations(module, branch.body), _operations(module, _otherwise(module, branch))
        if yes and no and yes != no and not is_shared(module, branch, module.scope(branch)):
            yield Hit(
                branch.test,
                f"ranks with other data run other collectives: {yes[0]}() here, {no[0]}() there",
                notes=(f"`{text(branch.test)}` is this rank's own",),
                help="decide on a reduced value, or run the same collectives on both ways",
            )


def _asks_a_tensor(module: Module, test: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in _ASKS
        and module.name_of(each.func.value).partition(".")[0] not in ("torch", "numpy", "math")
        for each in ast.walk(test)
    )


def _otherwise(module: Module, branch: ast.If) -> Sequence[ast.stmt]:
    """The else, or what follows a branch that leaves."""
    if branch.orelse or leaves(module, branch.body) is None:
        return branch.orelse
    parent = module.parents[branch]
    block = getattr(parent, "body", [])
    return block[block.index(branch) + 1 :] if branch in block else []


def _operations(module: Module, block: Sequence[ast.stmt]) -> list[str]:
    direct = dict(module.collectives)
    found = []
    for statement in block:
        for call in module.within(statement):
            if not isinstance(call, ast.Call):
                continue
            key = module.callee(call)
            reach = module.project.reaches.get(key) if key else None
            if operation := direct.get(call, reach.operation if reach else ""):
                found.append(operation)
    return sorted(found)
