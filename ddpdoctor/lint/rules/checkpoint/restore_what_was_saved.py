"""Saved and not restored.

## What it does
Finds a resume that restores the optimizer from a checkpoint and leaves out other states that the
same file saves into it: the scheduler, the scaler, the average, the epoch, random generators.

## Why is this bad?
The training goes on, but it is not the one that was stopped: the rate starts over, the average is
that of random weights, the epochs come again. The curve has a kink, and nothing says why.

## Example
```python
torch.save({"model": net.state_dict(), "optimizer": opt.state_dict(), "epoch": epoch}, path)
...
state = torch.load(path)
net.load_state_dict(state["model"])
opt.load_state_dict(state["optimizer"])
```

## Use instead
```python
state = torch.load(path)
net.load_state_dict(state["model"])
opt.load_state_dict(state["optimizer"])
first_epoch = state["epoch"] + 1
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP509"
NAME = "incomplete-resume"
CONFIDENCE: Confidence = "likely"
WORDS = ("torch.load",)
ALSO = ("load_state_dict",)

_OPTIMIZER = re.compile(r"optim|^opt$", re.I)
_STATE = re.compile(
    r"sched|scaler|(^|_)ema(_|$)|rng|generators?$|sampler|^(last_|start_)?epoch$|^(global_)?step$",
    re.I,
)


def check(module: Module) -> Iterator[Hit]:
    """Yield loads that bring back the optimizer and not what was saved with it."""
    if not module.is_distributed:
        return
    saves = [
        (save, keys) for save in module.calls_of("torch.save") if (keys := _saved(module, save))
    ]
    for load in module.calls_of("torch.load"):
        read = _read(module, load)
        if not any(_OPTIMIZER.search(key) for key in read):
            continue  # weights alone: a fine-tuning, a prediction
        for save, keys in saves:
            lost = sorted(key for key in keys - read if _STATE.search(key))
            if read <= keys and lost:
                named = ", ".join(f"`{key}`" for key in lost)
                yield Hit(
                    load,
                    f"the optimizer is restored from this file, but not {named}",
                    notes=(f"saved at line {save.lineno}",),
                    help="restore all that decides how the training goes on",
                )
                break


def _saved(module: Module, save: ast.Call) -> set[str]:
    """The keys of the dictionary that is saved, where it is written out."""
    state = module.value(argument(save, 0, "obj"))
    if not isinstance(state, ast.Dict):
        return set()
    return {
        key.value
        for key in state.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _read(module: Module, load: ast.Call) -> set[str]:
    """The keys that are read of what is loaded; none, if it is handed on to somebody else."""
    statement = module.statement(load)
    if not isinstance(statement, ast.Assign) or statement.value is not load:
        return set()
    name = statement.targets[0]
    if not isinstance(name, ast.Name) or len(module.bindings(name, name.id)) != 1:
        return set()
    keys: set[str] = set()
    for each in module.within(module.scope(load)):
        if not isinstance(each, ast.Name) or each.id != name.id or each is name:
            continue
        if (key := _key(module, each)) is None:
            return set()
        keys.add(key)
    return keys


def _key(module: Module, use: ast.Name) -> str | None:
    """The key in `state["key"]`, `state.get("key")` or `"key" in state`."""
    parent = module.parents[use]
    key: ast.AST | None = None
    if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load):
        key = parent.slice
    elif isinstance(parent, ast.Attribute) and parent.attr == "get":
        call = module.parents[parent]
        key = call.args[0] if isinstance(call, ast.Call) and call.args else None
    elif isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.In | ast.NotIn):
        key = parent.left
    is_text = isinstance(key, ast.Constant) and isinstance(key.value, str)
    return key.value if is_text else None  # type: ignore[union-attr]
