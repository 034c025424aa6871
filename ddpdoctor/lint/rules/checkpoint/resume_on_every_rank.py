"""State that is restored on rank 0 alone.

## What it does
Finds checkpoints that only the main rank loads and whose optimizer, scheduler or epoch the others
never get: nothing is broadcast in that function.

## Why is this bad?
DDP hands rank 0's weights to the others when it wraps, nothing else. The optimizers' moments, the
learning rate and the epoch differ: the ranks part silently, or run different numbers of steps.

## Example
```python
if rank == 0 and os.path.exists(path):
    state = torch.load(path, map_location="cpu")
    start_epoch = state["epoch"] + 1
```

## Use instead
```python
dist.barrier()
if os.path.exists(path):
    state = torch.load(path, map_location="cpu")
    start_epoch = state["epoch"] + 1
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import is_kept_for_some
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.trees import dotted, last_name, targets
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP513"
NAME = "resume-on-one-rank"
CONFIDENCE: Confidence = "likely"
WORDS = ("torch.load", "load_state_dict")
ALSO = ("DistributedDataParallel",)

_OF_ITS_OWN = re.compile(r"optim|sched|scaler", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield what the main rank restores for itself."""
    if not module.wraps:
        return
    for call in module.method_calls("load_state_dict"):
        assert isinstance(call.func, ast.Attribute)
        if not _OF_ITS_OWN.search(dotted(call.func.value)) or _is_shared(module, call):
            continue
        if branch := _branch_of_main(module, call):
            yield _hit(call, dotted(call.func.value), branch)
    for call in module.calls_of("torch.load"):
        branch = _branch_of_main(module, call)
        if branch is None or _is_shared(module, call):
            continue
        if name := _outlives(module, call, branch):
            yield _hit(call, name, branch)


def _hit(call: ast.Call, what: str, branch: ast.If) -> Hit:
    return Hit(
        call,
        f"`{what}` is restored on rank 0 alone: the other ranks begin anew",
        notes=(f"only rank 0 passes the condition at line {branch.lineno}",),
        help="load on every rank, or broadcast what was loaded",
    )


def _branch_of_main(module: Module, call: ast.Call) -> ast.If | None:
    for each in rank_guards(module, call):
        if (
            each.side == "main"
            and isinstance(each.guard.node, ast.If)
            and not each.guard.node.orelse
        ):
            return each.guard.node
    return None


def _is_shared(module: Module, call: ast.Call) -> bool:
    """Whether the function, or one that it calls, shares objects between ranks later."""
    scope = module.scope(call)
    return any(
        each.lineno > call.lineno
        and module.scope(each) is scope
        and ("broadcast" in last_name(each.func) or "sync" in last_name(each.func))
        for each in module.calls
    )


def _outlives(module: Module, call: ast.Call, branch: ast.If) -> str:
    """A name that the branch sets from the checkpoint, and that is read behind it."""
    loaded = {dotted(target) for target in targets(module.statement(call))} - {""}
    end = branch.end_lineno or 0
    for node in branch.body:
        if not isinstance(node, ast.Assign) or module.inside(call, node):
            continue
        used = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        if not used & loaded:
            continue
        for target in targets(node):
            name = dotted(target)
            if name and _is_read_after(module, branch, name, end):
                return name
    return ""


def _is_read_after(module: Module, branch: ast.If, name: str, end: int) -> bool:
    scope = module.scope(branch)
    return any(
        isinstance(each, ast.Name)
        and each.id == name
        and isinstance(each.ctx, ast.Load)
        and each.lineno > end
        and not is_kept_for_some(module, each)
        for each in module.within(scope)
    )
