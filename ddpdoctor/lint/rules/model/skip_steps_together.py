"""A step that one rank skips.

## What it does
Finds `continue` in a training loop on a rank's own loss (a spike, a NaN) or in the handler of an
error, between the loop's beginning and the optimizer's step, with nothing shared before it.

## Why is this bad?
Before the backward the other ranks wait for this one's gradients. After it they take a step that
this one does not take: the parameters part for good.

## Example
```python
loss.backward()
if loss.item() > limit:
    continue
optimizer.step()
```

## Use instead
```python
loss.backward()
skip = torch.tensor(float(loss.item() > limit))
dist.all_reduce(skip, op=dist.ReduceOp.MAX)
if skip:
    continue
optimizer.step()
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.divergence import is_shared, local_reason
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, last_name, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP307"
NAME = "rank-local-skip"
CONFIDENCE: Confidence = "likely"
WORDS = ("continue",)
ALSO = ("DistributedDataParallel",)

_OPTIMIZER = re.compile(r"opt|scaler", re.I)
_BROKEN = re.compile(r"isnan|isinf|isfinite")
_ABOUT_LOSS = re.compile(r"loss|grad", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield skips that the other ranks do not take part in."""
    if not module.wraps:
        return
    for node in module.by_kind[ast.Continue]:
        assert isinstance(node, ast.Continue)
        loops = module.loops(node)
        if not loops or not _steps_later(module, loops[0], node):
            continue
        around = module.parents[node]
        if isinstance(around, ast.If) and node in around.body:
            reason = _own(module, around.test)
            if reason and not is_shared(module, around, loops[0]):
                yield _hit(node, "on its own loss", reason)
        elif isinstance(around, ast.ExceptHandler) and _runs_backward(module, around):
            caught = text(around.type) if around.type else "any error"
            if "Stop" not in caught and not is_shared(module, node, loops[0]):
                yield _hit(
                    node, "on an error of its own", f"{caught} on one rank (line {around.lineno})"
                )


def _hit(node: ast.stmt, why: str, reason: str) -> Hit:
    return Hit(
        node,
        f"each rank skips the step for itself, {why}: the ranks' steps no longer pair",
        notes=(reason,),
        help="agree on the skip: all_reduce a flag, then skip on every rank",
    )


def _steps_later(module: Module, loop: ast.AST, node: ast.stmt) -> bool:
    return any(
        isinstance(call.func, ast.Attribute)
        and _OPTIMIZER.search(dotted(call.func.value))
        and module.loops(call)[:1] == [loop]
        and (call.lineno > node.lineno or _in_try_of(module, node, call))
        for call in module.method_calls("step")
    )


def _in_try_of(module: Module, node: ast.AST, call: ast.AST) -> bool:
    attempt = module.parents.get(module.parents[node])
    return isinstance(attempt, ast.Try) and module.inside(call, *attempt.body)


def _own(module: Module, test: ast.expr) -> str:
    if _BROKEN.search(text(test, 300)) and _ABOUT_LOSS.search(text(test, 300)):
        return f"`{text(test)}` is asked of this rank's own value"
    values = [
        each
        for each in ast.walk(test)
        if isinstance(each, ast.expr) and _ABOUT_LOSS.search(last_name(each))
    ]
    return local_reason(module, test) if values else ""


def _runs_backward(module: Module, handler: ast.ExceptHandler) -> bool:
    attempt = module.parents[handler]
    return isinstance(attempt, ast.Try) and any(
        module.inside(call, *attempt.body) for call in module.method_calls("backward")
    )
