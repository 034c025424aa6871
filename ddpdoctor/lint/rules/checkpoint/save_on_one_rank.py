"""Every rank writes one file.

## What it does
Finds `torch.save` that every rank reaches, with a path in which no rank occurs, in the function
that wraps the model in DDP or is called from it.

## Why is this bad?
N processes write one file at the same time: it is torn, or the last one wins.

## Example
```python
ddp_model = DDP(net)
train(ddp_model)
torch.save(ddp_model.module.state_dict(), path)
```

## Use instead
```python
if rank == 0:
    torch.save(ddp_model.module.state_dict(), path)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_kept_for_some
from ddpdoctor.lint.engine.module import Module, remembered
from ddpdoctor.lint.engine.rank import is_rank
from ddpdoctor.lint.engine.trees import argument, dotted, last_name, text
from ddpdoctor.lint.engine.wrappers import is_private
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP502"
NAME = "every-rank-saves"
CONFIDENCE: Confidence = "certain"
WORDS = ("torch.save",)
ALSO = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield saves that all ranks run over each other."""
    if not module.wraps:
        return
    owners = {module.scope(call) for call in module.wraps}
    classes = {cls for call in module.wraps if (cls := module.class_of(call))}
    for call in module.calls_of("torch.save"):
        path = argument(call, 1, "f")
        if (
            path is None
            or is_private(module, path)
            or _depends_on_rank(module, path, 4)
            or is_kept_for_some(module, call)
        ):
            continue
        scope = module.scope(call)
        if scope in owners:
            yield _hit(call, path, None)
            continue
        callers = module.callers.get(scope, []) if isinstance(scope, ast.FunctionDef) else []
        from_owner = any(
            module.scope(each) in owners or module.class_of(each) in classes for each in callers
        )
        if from_owner and not any(is_kept_for_some(module, each) for each in callers):
            yield _hit(call, path, "likely")


def _hit(call: ast.Call, path: ast.expr, confidence: Confidence | None) -> Hit:
    return Hit(
        call,
        f"every rank writes `{text(path, 30)}`: the file is torn, or the last rank wins",
        help="save on one rank, and share the outcome before others read it",
        confidence=confidence,
    )


@remembered
def _depends_on_rank(module: Module, node: ast.expr, depth: int) -> bool:
    """Whether the rank, or what is given from outside, takes part in a path."""
    for each in ast.walk(node):
        if not isinstance(each, ast.expr):
            continue
        if is_rank(module, each) or "rank" in last_name(each).lower():
            return True
        if depth and isinstance(each, ast.Name | ast.Attribute):
            values = [value for _, value in module.bindings(each, dotted(each))]
            if any(_depends_on_rank(module, value, depth - 1) for value in values):
                return True
    return False
