"""Rank 0 leaves while the others go on.

## What it does
Finds `sys.exit()` that the main rank reaches alone, in a loop that trains or runs collectives.

## Why is this bad?
The others wait in their next collective for a process that has ended well: the launcher sees no
failure, and on torchrun the store's host is gone.

## Example
```python
if rank == 0 and loss < target:
    sys.exit(0)
```

## Use instead
```python
done = torch.tensor(float(loss < target))
dist.broadcast(done, src=0)
if done:
    break
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.trees import is_constant
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP410"
NAME = "early-exit"
CONFIDENCE: Confidence = "likely"
WORDS = ("exit(",)
FACTS = ("collectives",)

_EXITS = ("sys.exit", "exit", "quit", "os._exit")


def check(module: Module) -> Iterator[Hit]:
    """Yield exits of one rank from a loop that all ranks must run alike."""
    for call in module.calls_of(*_EXITS):
        if call.args and not is_constant(call.args[0], 0):
            continue  # a failure: the launcher ends the job
        loops = module.loops(call)
        guard = next((e for e in rank_guards(module, call) if e.guard.kind == "branch"), None)
        if guard is None or not loops or not _meets(module, loops[-1]):
            continue
        yield Hit(
            call,
            "this rank leaves alone: the others wait for it in their next collective",
            notes=(f"it {guard.describe()}",),
            help="share the decision (broadcast it), and leave on every rank",
        )


def _meets(module: Module, loop: ast.AST) -> bool:
    """Whether a loop runs collectives, directly or through what it calls."""
    direct = {call for call, _ in module.collectives}
    for call in module.within(loop):
        if isinstance(call, ast.Call):
            key = module.callee(call)
            if call in direct or (key and key in module.project.reaches):
                return True
    return any(module.inside(each, loop) for each in module.method_calls("backward"))
