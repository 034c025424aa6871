"""Asynchronous work that nobody waits for.

## What it does
Finds `async_op=True`, `isend` and `irecv` whose result is thrown away or never used.

## Why is this bad?
Until `wait()` returns, the tensor may be read half-written or freed while it is being sent.
Nothing raises: the numbers are wrong, sometimes.

## Example
```python
dist.all_reduce(loss, async_op=True)
print(loss)
```

## Use instead
```python
work = dist.all_reduce(loss, async_op=True)
work.wait()
print(loss)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.vocabulary import DISTRIBUTED
from ddpdoctor.lint.engine.wrappers import keyword_is
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP414"
NAME = "work-not-awaited"
CONFIDENCE: Confidence = "certain"
WORDS = (
    "async_op",
    "isend",
    "irecv",
)
ALSO = ("distributed",)


def check(module: Module) -> Iterator[Hit]:
    """Yield asynchronous calls whose work is lost."""
    for call, name in module.names.items():
        head, _, last = name.rpartition(".")
        if f"{head}." not in DISTRIBUTED:
            continue
        is_async = last in ("isend", "irecv") or keyword_is(call, "async_op", True)
        if not is_async:
            continue
        parent = module.parents[call]
        if isinstance(parent, ast.Expr) or _is_never_read(module, parent):
            yield Hit(
                call,
                f"the work of {last}() is never waited for: its tensor may be half-written",
                help="keep the work and call `.wait()` before the tensor is used",
            )


def _is_never_read(module: Module, parent: ast.AST) -> bool:
    """Whether the call is bound to a name that its scope never reads."""
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return False
    target = parent.targets[0]
    scope = module.scope(parent)
    if not isinstance(target, ast.Name) or not isinstance(scope, ast.FunctionDef):
        return False
    if target.id == "_":
        return False  # thrown away in so many words
    return not any(
        isinstance(each, ast.Name) and each.id == target.id and isinstance(each.ctx, ast.Load)
        for each in module.within(scope)
    )
