"""Collective at exit.

## What it does
Finds functions registered with `atexit` that run a collective.

## Why is this bad?
A rank that crashes runs its exit hooks: the barrier there waits for peers that are still training
(or pairs with a barrier of theirs). The crashed rank stays alive until the timeout, and its error
is seen last.

## Example
```python
atexit.register(dist.barrier)
```

## Use instead
```python
atexit.register(dist.destroy_process_group)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.vocabulary import collective
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP409"
NAME = "atexit-barrier"
CONFIDENCE: Confidence = "certain"
WORDS = ("atexit",)
FACTS = ("collectives",)


def check(module: Module) -> Iterator[Hit]:
    """Yield what is registered with atexit and leads to a collective."""
    for call in module.calls_of("atexit.register"):
        if not call.args:
            continue
        target = call.args[0]
        name = module.name_of(target)
        if operation := collective(name):
            yield _hit(call, operation, ())
            continue
        if isinstance(target, ast.Lambda):
            inside = [op for node, op in module.collectives if module.inside(node, target)]
            if inside:
                yield _hit(call, inside[0], ())
            continue
        key = module.project.resolve(module.path, module.qualname(call), name) if name else None
        if key and (reach := module.project.reaches.get(key)):
            yield _hit(call, reach.operation, reach.chain)
    for function in module.functions:
        if any(module.name_of(each) == "atexit.register" for each in function.decorator_list):
            reach = module.project.reaches.get((module.path, module.qualname(function)))
            if reach:
                yield _hit(function, reach.operation, reach.chain)


def _hit(node: ast.AST, operation: str, chain: tuple[str, ...]) -> Hit:
    return Hit(
        node,
        f"{operation.removesuffix('()')}() runs at exit: a crashed rank waits there for its peers",
        notes=chain,
        help="no collective at exit; destroy the process group where it was made",
    )
