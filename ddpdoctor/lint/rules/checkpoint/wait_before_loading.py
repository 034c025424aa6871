"""Load of what rank 0 is still writing.

## What it does
Finds a file that one rank writes and every rank loads later in the same function, with no
collective in between.

## Why is this bad?
The other ranks arrive first and read half a file: "failed finding central directory", EOFError,
and a dozen other faces of the same race.

## Example
```python
if rank == 0:
    torch.save(state, path)
state = torch.load(path)
```

## Use instead
```python
if rank == 0:
    torch.save(state, path)
dist.barrier()
state = torch.load(path)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.trees import argument, last_name, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP501"
NAME = "checkpoint-race"
CONFIDENCE: Confidence = "certain"
FACTS = ("load",)


def check(module: Module) -> Iterator[Hit]:
    """Yield loads that race with the save of another rank."""
    if not module.is_distributed:
        return
    saves = list(_doing(module, "torch.save", "save"))
    for load, path, sure in _doing(module, "torch.load", "load"):
        if any(
            each.test.side == "main" and each.side == "main" for each in rank_guards(module, load)
        ):
            continue
        for save, written, sure_save in saves:
            if save is load or module.scope(save) is not module.scope(load):
                continue
            if save.lineno >= load.lineno or not written & path:
                continue
            branch = next((e for e in rank_guards(module, save) if e.guard.kind == "branch"), None)
            inside = module.callee(save)
            alone = module.project.effects["rank_save"].get(inside, ()) if inside else ()
            if branch is None and not alone:
                continue
            if branch is not None and module.inside(load, branch.guard.node):
                continue
            if _meets_between(module, save, load):
                continue
            yield Hit(
                load,
                "ranks load this file while another rank may still be writing it",
                notes=(
                    f"written at line {save.lineno}"
                    + (f"; it {branch.describe()}" if branch else ", on one rank"),
                    *alone,
                ),
                help="a barrier (or a shared outcome) between the save and the load",
                confidence=None if sure and sure_save else "likely",
            )
            break


def _doing(module: Module, name: str, effect: str) -> Iterator[tuple[ast.Call, set[str], bool]]:
    """(call, expressions that may be the path, whether it is the function itself)."""
    for call in module.calls:
        if module.names.get(call) == name:
            position = 1 if effect == "save" else 0
            path = argument(call, position, "f")
            if path is not None:
                yield call, {text(path, 200)}, True
        elif (key := module.callee(call)) and key in module.project.effects[effect]:
            given = [*call.args, *(each.value for each in call.keywords)]
            paths = {text(each, 200) for each in given if _is_path(each)}
            yield call, paths, False


def _is_path(node: ast.expr) -> bool:
    shown = text(node, 200).lower()
    return any(word in shown for word in ("path", "file", "ckpt", "checkpoint", ".pt", "name"))


def _meets_between(module: Module, save: ast.Call, load: ast.Call) -> bool:
    direct = {call for call, _ in module.collectives}
    for call in module.calls:
        if save.lineno < call.lineno <= load.lineno and call is not load:
            key = module.callee(call)
            if call in direct or (key and key in module.project.reaches):
                return True
            if "barrier" in last_name(call.func) or "sync" in last_name(call.func):
                return True
    both = [module.callee(call) for call in (save, load)]
    return any(key in module.project.reaches for key in both if key)
