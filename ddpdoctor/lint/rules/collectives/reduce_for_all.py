"""A decision on what only the root was given.

## What it does
Finds `dist.reduce(x, dst=0)` whose `x` then decides something on every rank: in an `if`, a `while`,
or as the metric of a scheduler.

## Why is this bad?
Only the root has the sum; what is in `x` elsewhere is undefined. The ranks decide differently.

## Example
```python
dist.reduce(loss, dst=0)
if loss > best:
    stop = True
```

## Use instead
```python
dist.all_reduce(loss)
if loss > best:
    stop = True
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_kept_for_some
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, last_name
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP416"
NAME = "reduced-only-on-root"
CONFIDENCE: Confidence = "likely"
WORDS = (".reduce(", "reduce(")
FACTS = ("collectives",)


def check(module: Module) -> Iterator[Hit]:
    """Yield reductions to one rank that all ranks go by."""
    for call in module.calls_of("torch.distributed.reduce"):
        name = dotted(call.args[0]) if call.args else ""
        if not name or is_kept_for_some(module, call):
            continue
        if read := _deciding_read(module, call, name):
            yield Hit(
                call,
                f"only the root gets the sum, and every rank goes by `{name}`",
                notes=(f"read at line {read.lineno}",),
                help="all_reduce() instead of reduce()",
            )


def _deciding_read(module: Module, call: ast.Call, name: str) -> ast.Name | None:
    """Where the value decides, itself or as `mean = name / n`, before it is bound again."""
    scope = module.scope(call)
    names = {name}
    for statement in module.by_kind[ast.Assign]:
        assert isinstance(statement, ast.Assign)
        if statement.lineno > call.lineno and module.scope(statement) is scope:
            used = {e.id for e in ast.walk(statement.value) if isinstance(e, ast.Name)}
            if used & names and not is_kept_for_some(module, statement):
                names |= {dotted(target) for target in statement.targets}
    for each in module.by_kind[ast.Name]:
        assert isinstance(each, ast.Name)
        if each.id not in names or each.lineno <= call.lineno or module.scope(each) is not scope:
            continue
        decides = isinstance(each.ctx, ast.Load) and _decides(module, each)
        if decides and not is_kept_for_some(module, each):
            return each
    return None


def _decides(module: Module, node: ast.Name) -> bool:
    child: ast.AST = node
    for parent in module.ancestors(node):
        if isinstance(parent, ast.If | ast.While | ast.IfExp):
            return child is parent.test
        if isinstance(parent, ast.Call) and last_name(parent.func) == "step":
            return child in parent.args
        if isinstance(parent, ast.stmt):
            return False
        child = parent
    return False
