"""Learning rate from a rank's own metric.

## What it does
Finds `ReduceLROnPlateau.step(metric)` with a metric that is not reduced over the ranks.

## Why is this bad?
Each rank sees another metric, and lowers its learning rate in another epoch: from then on the
ranks train different models, silently.

## Example
```python
scheduler.step(val_loss)
```

## Use instead
```python
dist.all_reduce(val_loss, op=dist.ReduceOp.AVG)
scheduler.step(val_loss)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.divergence import is_shared, local_reason
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP216"
NAME = "scheduler-on-local-metric"
CONFIDENCE: Confidence = "likely"
WORDS = ("ReduceLROnPlateau",)
ALSO = (
    "init_process_group",
    "DistributedDataParallel",
)


def check(module: Module) -> Iterator[Hit]:
    """Yield plateau schedulers that step on what only this rank knows."""
    if not module.wraps and "torch.distributed.init_process_group" not in module.by_name:
        return
    for call in module.method_calls("step"):
        assert isinstance(call.func, ast.Attribute)
        if not call.args or not _is_plateau(module, call.func.value):
            continue
        reason = local_reason(module, call.args[0])
        if reason and not is_shared(module, call, module.scope(call)):
            yield Hit(
                call,
                "the learning rate follows this rank's own metric: the ranks part",
                notes=(reason,),
                help="reduce the metric over the ranks first",
            )


def _is_plateau(module: Module, holder: ast.expr) -> bool:
    return any(
        isinstance(value, ast.Call)
        and (module.names.get(value) or "").endswith("ReduceLROnPlateau")
        for _, value in module.bindings(holder, dotted(holder))
    )
