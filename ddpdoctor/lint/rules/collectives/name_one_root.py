"""A collective whose root is each rank itself.

## What it does
Finds `broadcast`, `reduce`, `gather` and `scatter` with the calling process's own rank as root.

## Why is this bad?
The root is a property of the call, the same on all ranks. Where each names itself, all send and
none receives: gloo returns at once with everybody's own values, or hangs at the next collective.

## Example
```python
dist.broadcast(mean, src=rank)
```

## Use instead
```python
dist.broadcast(mean, src=0)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_run_by_all, stands_for
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import is_global_rank, is_looped_over
from ddpdoctor.lint.engine.trees import argument, has_star
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP403"
NAME = "collective-shape-mismatch"
CONFIDENCE: Confidence = "certain"
WORDS = ("src", "dst")
FACTS = ("collectives",)

_ROOTS = {
    "broadcast": (1, "src"),
    "broadcast_object_list": (1, "src"),
    "reduce": (1, "dst"),
    "gather": (2, "dst"),
    "gather_object": (2, "dst"),
    "scatter": (2, "src"),
    "scatter_object_list": (2, "src"),
}


def check(module: Module) -> Iterator[Hit]:
    """Yield rooted collectives for which every rank names itself."""
    for call, operation in module.collectives:
        if operation not in _ROOTS or has_star(call):
            continue
        position, name = _ROOTS[operation]
        root = argument(call, position, name)
        if root is not None and _is_own_rank(module, root) and is_run_by_all(module, call):
            yield Hit(
                call,
                f"every rank names itself as the root of {operation}(): nobody gets anything",
                help=f"one root for all ranks: {name}=0",
            )


def _is_own_rank(module: Module, node: ast.expr, depth: int = 5) -> bool:
    """Whether a value is this process's rank by what it is bound to, whatever it is called."""
    if is_global_rank(module, node):
        return True
    if depth == 0 or not isinstance(node, ast.Name | ast.Attribute) or is_looped_over(module, node):
        return False
    values = stands_for(module, node)
    return bool(values) and all(_is_own_rank(module, each, depth - 1) for each in values)
