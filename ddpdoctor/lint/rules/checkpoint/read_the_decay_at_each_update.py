"""EMA decay frozen in a closure.

## What it does
Finds an averaging function that captures `decay` when it is made, in a file that sets `.decay`
later.

## Why is this bad?
The later value changes an attribute that nothing reads: the printed number moves, the average does
not.

## Example
```python
class Ema:
    def __init__(self, model, decay):
        self.decay = decay
        self.update = lambda old, new: decay * old + (1 - decay) * new

ema.decay = 0.9999
```

## Use instead
```python
class Ema:
    def update(self, old, new):
        return self.decay * old + (1 - self.decay) * new
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.trees import dotted
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP507"
NAME = "frozen-ema-decay"
CONFIDENCE: Confidence = "likely"
WORDS = ("decay",)
ALSO = (
    ".decay =",
    ".ema_decay =",
)


def check(module: Module) -> Iterator[Hit]:
    """Yield closures over a decay that somebody believes to change."""
    if not _is_set_later(module):
        return
    for function in module.functions:
        if "decay" not in params(function):
            continue
        for node in module.within(function):
            if not isinstance(node, ast.FunctionDef | ast.Lambda) or node is function:
                continue
            if "decay" not in params(node) and _reads(module, node):
                yield Hit(
                    node,
                    "the decay is captured here once: setting `.decay` later changes nothing",
                    help="read `self.decay` at each update",
                )


def _is_set_later(module: Module) -> bool:
    """Whether `x.decay = ...` is set outside of the class that owns it."""
    for node in module.by_kind[ast.Attribute]:
        if isinstance(node, ast.Attribute) and node.attr in ("decay", "ema_decay"):
            is_own = dotted(node.value) == "self"
            function = module.function(node)
            in_init = function is not None and function.name == "__init__"
            if isinstance(node.ctx, ast.Store) and not (is_own and in_init):
                return True
    return False


def _reads(module: Module, node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "decay" and isinstance(each.ctx, ast.Load)
        for each in module.within(node)
    )
