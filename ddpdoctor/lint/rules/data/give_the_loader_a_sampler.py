"""Training loader without a sampler.

## What it does
Finds a `DataLoader` without a sampler whose batches feed the backward of a DDP model in the same
function.

## Why is this bad?
Every rank reads the whole set: N times the work for no speed-up, and where the order is shared, N
identical gradients.

## Example
```python
loader = DataLoader(data, batch_size=32, shuffle=True)
for batch in loader:
    ddp_model(batch).sum().backward()
```

## Use instead
```python
loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data))
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import handed, origins, training_loops
from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.trees import dotted, has_star, is_constant, keyword, targets, text
from ddpdoctor.lint.engine.vocabulary import LOADER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP202"
NAME = "no-sampler"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)


_GIVEN = ("sampler", "batch_sampler")
_SHARDED = re.compile(r"rank|shard|iterable|stream|subset|split|replica|local|partition", re.I)

_OWN_PART = re.compile(r"rank|shard|replica|world|iterable", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield training loaders that every rank reads in full."""
    if not module.wraps or "prepare" in module.by_method:
        return
    training = training_loops(module)
    for call in module.calls_of(*LOADER):
        if not call.args or has_star(call) or any(_is_given(module, call, e) for e in _GIVEN):
            continue
        if keyword(call, "generator"):
            continue  # one order for all ranks, whose batches are dealt out
        if len(call.args) > 3 or (keyword(call, "collate_fn") and "rank" in text(call, 500)):
            continue
        if not any(_feeds(module, name, training) for name in _names(module, call)):
            continue
        if any(_is_sharded(module, each) for each in origins(module, call.args[0])):
            continue
        yield Hit(
            call,
            "every rank reads the whole dataset: this training loader has no sampler",
            help="sampler=DistributedSampler(dataset), and set_epoch in the loop",
        )


def _is_given(module: Module, call: ast.Call, name: str) -> bool:
    value = keyword(call, name)
    return value is not None and not is_constant(module.value(value), None)


def _is_sharded(module: Module, data: ast.expr) -> bool:
    """Whether an expression, or the class that it builds, speaks of a part of the data."""
    if _SHARDED.search(text(data, 500)):
        return True
    made = module.name_of(data.func) if isinstance(data, ast.Call) else ""
    return any(
        _OWN_PART.search("\n".join(module.lines[cls.lineno - 1 : cls.end_lineno]))
        for cls in module.classes
        if cls.name == made
    )


def _names(module: Module, call: ast.Call) -> Iterator[ast.expr]:
    """What holds the loader: bound here, or where the function that returns it is called."""
    statement = module.statement(call)
    made = [call]
    function = module.function(call)
    if isinstance(statement, ast.Return) and statement.value is call and function is not None:
        made = module.callers.get(function, [])
    for each in made:
        bound = targets(module.statement(each))
        if len(bound) == 1:
            yield bound[0]


def _feeds(module: Module, held: ast.expr, training: set[ast.AST]) -> bool:
    """Whether a training loop runs over what a name holds, here or where it is handed to."""
    name = dotted(held)
    if not name:
        return False
    owner: ast.AST = module.scope(held)
    if name.startswith("self."):
        owner = module.class_of(held) or owner
    if _is_looped(module, name, owner, training):
        return True
    return any(
        _is_looped(module, parameter, function, training)
        for function, calls in module.callers.items()
        if any(module.inside(call, owner) for call in calls)
        for parameter in params(function)
        for call, value in handed(module, function, parameter)
        if dotted(value) == name and module.inside(call, owner)
    )


def _is_looped(module: Module, name: str, owner: ast.AST, training: set[ast.AST]) -> bool:
    return any(
        isinstance(loop, ast.For)
        and module.inside(loop, owner)
        and any(dotted(each) == name for each in ast.walk(loop.iter))
        for loop in training
    )
