"""Running total that keeps the graph.

## What it does
Finds `total += loss` in a training loop of distributed code, without `.detach()` or `.item()`.

## Why is this bad?
The total holds on to the graph of every step: memory grows until one rank runs out, and the others
wait for it.

## Example
```python
loss.backward()
total += loss
```

## Use instead
```python
loss.backward()
total += loss.detach()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP601"
NAME = "retained-graph"
CONFIDENCE: Confidence = "likely"
WORDS = (".backward(",)
ALSO = (
    "torch.distributed",
    "DistributedDataParallel",
    "accelerate",
)


def check(module: Module) -> Iterator[Hit]:
    """Yield sums over losses that still have their graph."""
    if not module.is_distributed:
        return
    backwards = [
        (call, dotted(call.func.value))
        for call in module.method_calls("backward")
        if isinstance(call.func, ast.Attribute)
    ]
    for node in module.by_kind[ast.AugAssign]:
        assert isinstance(node, ast.AugAssign)
        loss = _loss(node.value)
        loops = module.loops(node)
        if not loops or not loss or not isinstance(node.op, ast.Add):
            continue
        scope = module.scope(node)
        ran = [c for c, name in backwards if name == loss.id and module.inside(c, loops[0])]
        total = dotted(node.target)
        summed = any(name == total and module.scope(c) is scope for c, name in backwards)
        unbound = any(
            statement.lineno > ran[0].lineno and statement.lineno < node.lineno
            for statement, _ in (module.bindings(loss, loss.id) if ran else ())
        )
        if ran and not summed and not unbound and total:
            yield Hit(
                node,
                f"`{total} += {loss.id}` keeps the graph of every step: memory grows",
                help=f"`{total} += {loss.id}.detach()`",
                fix=Fix((replace(module, loss, f"{loss.id}.detach()"),)),
            )


def _loss(value: ast.expr) -> ast.Name | None:
    """The bare loss in `loss`, `loss * n`, `loss / n`."""
    if isinstance(value, ast.Name):
        return value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        return value.left if isinstance(value.left, ast.Name) else None
    return None
