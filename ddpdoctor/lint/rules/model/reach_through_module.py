"""Attribute asked of the wrapper.

## What it does
Finds methods and attributes of the model asked of the DDP wrapper.

## Why is this bad?
The wrapper has only its own: AttributeError "'DistributedDataParallel' object has no attribute".
It raises in the distributed run alone.

## Example
```python
ddp_model.generate(x)
```

## Use instead
```python
ddp_model.module.generate(x)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import last_name
from ddpdoctor.lint.engine.vocabulary import OF_THE_WRAPPER
from ddpdoctor.lint.engine.wrappers import holds_wrapper, wraps
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP318"
NAME = "wrapper-attribute"
CONFIDENCE: Confidence = "certain"
WORDS = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield reads of what the wrapper does not have."""
    found = wraps(module)
    if not found:
        return
    stored = {
        node.attr
        for node in module.by_kind[ast.Attribute]
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    for node in module.by_kind[ast.Attribute]:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if node.attr in OF_THE_WRAPPER or node.attr.startswith("_") or node.attr in stored:
            continue
        wrap = holds_wrapper(module, node.value, found)
        if wrap is None or _is_asked_first(module, node):
            continue
        conditional = isinstance(module.parents[wrap.statement], ast.If) or isinstance(
            module.parents[wrap.call], ast.IfExp
        )
        yield Hit(
            node,
            f"the DDP wrapper `{wrap.name}` has no attribute `{node.attr}`: AttributeError",
            notes=(f"wrapped at line {wrap.call.lineno}",),
            help=f"`{wrap.name}.module.{node.attr}`",
            fix=None if conditional else Fix((replace(module, node.value, f"{wrap.name}.module"),)),
            confidence="likely" if wrap.handed else None,
        )


def _is_asked_first(module: Module, node: ast.Attribute) -> bool:
    """Whether hasattr, isinstance or a try stands around the access."""
    for each in module.ancestors(node):
        if isinstance(each, ast.Try):
            return True
        if isinstance(each, ast.If | ast.IfExp):
            names = {last_name(part) for part in ast.walk(each.test)}
            if names & {"hasattr", "isinstance", "distributed", "is_distributed", "ddp"}:
                return True
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return False
