"""A failed save that only rank 0 knows of.

## What it does
Finds code of the main rank that catches the error of a save and leaves (`return`, `break`,
`continue`), where the other ranks go on to a collective.

## Why is this bad?
Disk full, quota, a folder that is gone: rank 0 gives up, the others wait in the barrier behind the
save until their timeout.

## Example
```python
if rank == 0:
    try:
        save(model, path)
    except OSError:
        return False
dist.barrier()
```

## Use instead
```python
saved = [True]
if rank == 0:
    try:
        save(model, path)
    except OSError:
        saved = [False]
dist.broadcast_object_list(saved, src=0)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP511"
NAME = "failed-save-unshared"
CONFIDENCE: Confidence = "certain"
WORDS = ("except",)
FACTS = ("collectives",)


def check(module: Module) -> Iterator[Hit]:
    """Yield the ways out of a handler that lead one rank past what all must run."""
    for handler in module.by_kind[ast.ExceptHandler]:
        assert isinstance(handler, ast.ExceptHandler)
        leave = handler.body[-1]
        if not isinstance(leave, ast.Return | ast.Break | ast.Continue):
            continue
        attempt = module.parents[handler]
        guard = next((e for e in rank_guards(module, attempt) if e.guard.kind == "branch"), None)
        if guard is None or not isinstance(guard.guard.node, ast.If) or not _saves(module, attempt):
            continue
        branch = guard.guard.node
        block = getattr(module.parents[branch], "body", [])
        rest = block[block.index(branch) + 1 :] if branch in block else []
        later = [call for call, _ in module.collectives if module.inside(call, *rest)]
        if later:
            yield Hit(
                leave,
                "where the save fails this rank leaves, and the others wait for it",
                notes=(
                    f"it {guard.describe()}",
                    f"the others go on to the collective at line {later[0].lineno}",
                ),
                help="share the outcome: broadcast whether the save succeeded",
                confidence=None if guard.test.pure else "likely",
            )


def _saves(module: Module, attempt: ast.AST) -> bool:
    """Whether the body of a try writes a checkpoint, by itself or through what it calls."""
    for call in module.within(attempt):
        if isinstance(call, ast.Call):
            key = module.callee(call)
            if module.names.get(call) == "torch.save":
                return True
            if key and key in module.project.effects["save"]:
                return True
    return False
