"""A mean over what this rank has, in a loss that DDP averages again.

## What it does
Finds a loss of the form `sum / mask.sum()` that is backwarded under DDP without the count having
been summed over the ranks.

## Why is this bad?
DDP averages the ranks' gradients. A rank with three masked tokens then weighs as much as one with
three hundred: the gradient is not that of one process with all the data.

## Example
```python
loss = (losses * mask).sum() / mask.sum()
loss.backward()
```

## Use instead
```python
count = mask.sum()
dist.all_reduce(count)
loss = (losses * mask).sum() * dist.get_world_size() / count
loss.backward()
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.divergence import is_shared
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, last_name, targets, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP309"
NAME = "mean-of-means"
CONFIDENCE: Confidence = "likely"
WORDS = (".sum()",)
ALSO = ("DistributedDataParallel",)

_PARTIAL = re.compile(r"mask|valid|weight|token|not_pad|nonpad|labels|keep", re.I)
_SMALLEST = ("clamp", "clamp_", "clip", "max")


def check(module: Module) -> Iterator[Hit]:
    """Yield losses that are divided by a count of this rank's own."""
    if not module.wraps:
        return
    for node in module.by_kind[ast.BinOp]:
        assert isinstance(node, ast.BinOp)
        if not isinstance(node.op, ast.Div) or not _is_count(module, node.right):
            continue
        if ".sum()" not in text(node.left, 300) or not _is_backwarded(module, node):
            continue
        if not is_shared(module, node, module.scope(node)):
            yield Hit(
                node,
                "this rank's sum is divided by this rank's count, and DDP averages the means",
                notes=(f"`{text(node.right)}` differs between ranks",),
                help="divide by the count of all ranks, times their number (DDP divides by it)",
            )


def _is_count(module: Module, node: ast.expr) -> bool:
    """`mask.sum()`, also clamped or behind a name."""
    value = module.value(node) or node
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in _SMALLEST
    ):
        value = value.func.value
    if not isinstance(value, ast.Call) or last_name(value.func) != "sum" or value.args:
        return False
    assert isinstance(value.func, ast.Attribute | ast.Name)
    return isinstance(value.func, ast.Attribute) and bool(_PARTIAL.search(text(value.func.value)))


def _is_backwarded(module: Module, node: ast.BinOp) -> bool:
    """Whether the quotient, or the name that gets it, is backwarded in the same function."""
    statement = module.statement(node)
    names = {dotted(target) for target in targets(statement)} - {""}
    scope = module.scope(node)
    for call in module.method_calls("backward"):
        assert isinstance(call.func, ast.Attribute)
        if module.inside(node, call.func.value):
            return True
        used = {dotted(each) for each in ast.walk(call.func.value)}
        if module.scope(call) is scope and names & used and call.lineno >= node.lineno:
            return True
    return False
