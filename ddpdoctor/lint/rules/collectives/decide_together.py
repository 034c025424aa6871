"""Every rank decides for itself when to stop.

## What it does
Finds `break` and `return` in a training loop whose condition comes from a rank's own loss or
metric, from the clock, or from a file's existence, with nothing shared in between.

## Why is this bad?
The ranks' losses and clocks differ. One rank leaves the loop, the others wait for it in the next
all-reduce.

## Example
```python
for epoch in range(epochs):
    loss = train_epoch(ddp_model)
    if time.time() - start > budget:
        break
```

## Use instead
```python
for epoch in range(epochs):
    loss = train_epoch(ddp_model)
    stop = torch.tensor(float(time.time() - start > budget))
    dist.broadcast(stop, src=0)
    if stop:
        break
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.divergence import is_shared, local_reason
from ddpdoctor.lint.engine.flow import training_loops
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP405"
NAME = "local-stop-decision"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield exits from a training loop that the ranks do not agree on."""
    if not module.wraps:
        return
    training = training_loops(module)
    for branch in module.ifs:
        loops = [loop for loop in module.loops(branch) if loop in training]
        leave = branch.body[-1]
        if not loops or not isinstance(leave, ast.Break | ast.Return):
            continue
        if isinstance(leave, ast.Break) and module.loops(branch)[0] not in training:
            continue
        reason = local_reason(module, branch.test)
        if reason and not is_shared(module, branch, loops[-1]):
            word = "break" if isinstance(leave, ast.Break) else "return"
            yield Hit(
                branch.test,
                f"each rank decides for itself to `{word}`: the others wait for it",
                notes=(reason,),
                help="let rank 0 decide and broadcast, or reduce the value first",
            )
