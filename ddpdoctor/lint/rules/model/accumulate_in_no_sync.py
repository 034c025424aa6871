"""Gradient accumulation without no_sync.

## What it does
Finds a DDP training loop that steps the optimizer every k-th batch and never uses `no_sync`.

## Why is this bad?
Every backward reduces all gradients, although only the last one of k needs to: k times the
traffic.

## Example
```python
for i, batch in enumerate(loader):
    ddp_model(batch).backward()
    if (i + 1) % k == 0:
        optimizer.step()
```

## Use instead
```python
for i, batch in enumerate(loader):
    last = (i + 1) % k == 0
    with nullcontext() if last else ddp_model.no_sync():
        ddp_model(batch).backward()
    if last:
        optimizer.step()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import text
from ddpdoctor.lint.engine.wrappers import stepping_branch
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP304"
NAME = "accumulation-syncs-every-step"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)


_KNOWN = ("no_sync", "require_backward_grad_sync", "accumulate(", "set_requires_gradient_sync")


def check(module: Module) -> Iterator[Hit]:
    """Yield the backwards of accumulating loops that reduce every time."""
    if not module.wraps or any(word in module.text for word in _KNOWN):
        return
    for call in module.method_calls("backward"):
        loops = module.loops(call)
        if not loops:
            continue
        branch = stepping_branch(module, loops[0])
        if branch is None or module.inside(call, branch):
            continue
        yield Hit(
            call,
            "every micro-batch reduces all gradients: accumulation without no_sync",
            notes=(f"the optimizer steps only `if {text(branch.test)}` (line {branch.lineno})",),
            help="run all but the last micro-batch inside `with model.no_sync():`",
        )
