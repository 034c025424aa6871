"""A refresh from a checkpoint that each rank decides on.

## What it does
Finds an `if` on a rank's own loss, metric or clock whose body reloads a checkpoint and meets the
other ranks in a collective.

## Why is this bad?
The ranks' losses differ: one goes into the refresh and waits in its barrier, the others go on to
the next step's all-reduce. The two pair, or hang.

## Example
```python
if loss > best:
    refresh_from_ema()  # save, barrier, load
```

## Use instead
```python
total = torch.tensor(loss)
dist.all_reduce(total)
if total.item() > best:
    refresh_from_ema()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.divergence import is_shared, local_reason
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP505"
NAME = "rank-divergent-refresh"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)
FACTS = ("collectives",)


def check(module: Module) -> Iterator[Hit]:
    """Yield branches on a local value that reload and meet."""
    for branch in module.ifs:
        calls = [
            call
            for statement in branch.body
            for call in module.within(statement)
            if isinstance(call, ast.Call)
        ]
        if not _reloads(module, calls) or not _meets(module, calls):
            continue
        within = next(iter(module.loops(branch)), module.scope(branch))
        reason = local_reason(module, branch.test)
        if reason and not is_shared(module, branch.test, within):
            yield Hit(
                branch.test,
                "each rank decides for itself to reload: the others never come to its barrier",
                notes=(reason,),
                help="reduce the metric first, then decide",
            )


def _reloads(module: Module, calls: list[ast.Call]) -> bool:
    loads = module.project.effects["load"]
    return any(
        module.names.get(call) == "torch.load" or module.callee(call) in loads for call in calls
    )


def _meets(module: Module, calls: list[ast.Call]) -> bool:
    direct = {call for call, _ in module.collectives}
    return any(
        call in direct or ((key := module.callee(call)) and key in module.project.reaches)
        for call in calls
    )
