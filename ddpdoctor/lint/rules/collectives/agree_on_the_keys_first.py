"""As many collectives as a rank happens to have data for.

## What it does
Finds loops with a collective in the body that run over the keys of a dictionary which this rank
filled from its own data, or over the distinct values of a tensor.

## Why is this bad?
A rank that has not seen one of the classes runs one collective less. The others wait for it, or
their reductions pair with the wrong key.

## Example
```python
for label in sorted(counts):
    dist.all_reduce(counts[label])
```

## Use instead
```python
for label in range(num_classes):
    dist.all_reduce(counts[label])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.divergence import is_shared
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, last_name
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP418"
NAME = "data-dependent-collective"
CONFIDENCE: Confidence = "likely"
WORDS = ("for ",)
FACTS = ("collectives",)

_EMPTY = ("dict", "collections.defaultdict", "collections.Counter", "collections.OrderedDict")
_THROUGH = ("sorted", "list", "tuple", "enumerate", "reversed")


def check(module: Module) -> Iterator[Hit]:
    """Yield loops whose number of collectives hangs on what this rank has seen."""
    direct = {call for call, _ in module.collectives}
    loops = {loop for call in direct for loop in module.loops(call)[:1]}
    for loop in loops:
        if not isinstance(loop, ast.For):
            continue
        over = _iterated(loop.iter)
        what = _distinct(module, over) or _filled_here(module, over)
        if what and not is_shared(module, loop, module.scope(loop)):
            yield Hit(
                loop.iter,
                f"one collective for each of {what}: ranks with other data run another number",
                help="agree on the keys and their order first, or reduce one fixed-size tensor",
            )


def _iterated(node: ast.expr) -> ast.expr:
    """`counts` of `sorted(counts.items())`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _THROUGH and node.args:
            node = node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items", "tolist"):
            node = node.func.value
        else:
            break
    return node


def _distinct(module: Module, node: ast.expr) -> str:
    value = module.value(node)
    is_unique = isinstance(value, ast.Call) and last_name(value.func) == "unique"
    return "the distinct values of this rank's data" if is_unique else ""


def _filled_here(module: Module, node: ast.expr) -> str:
    """A dictionary that begins empty and gets keys that are no constants, in this function."""
    name = dotted(node)
    values = [value for _, value in module.bindings(node, name)] if name else []
    if len(values) != 1 or not _is_empty(module, values[0]):
        return ""
    scope = module.scope(node)
    for each in module.by_kind[ast.Subscript]:
        assert isinstance(each, ast.Subscript)
        stored = isinstance(each.ctx, ast.Store) and dotted(each.value) == name
        if stored and module.scope(each) is scope and module.loops(each):
            return f"the keys of `{name}`" if _varies(module, each.slice) else ""
    return ""


def _is_empty(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.Dict):
        return not value.keys
    if not isinstance(value, ast.Call) or module.name_of(value.func) not in _EMPTY:
        return False
    return not value.args or last_name(value.func) == "defaultdict"


def _varies(module: Module, key: ast.expr) -> bool:
    """Whether a key comes of data: no constant, and no name out of a fixed list or range."""
    if not isinstance(key, ast.Name):
        return False
    found = module.bindings(key, key.id)
    return bool(found) and all(
        isinstance(statement, ast.For)
        and any(isinstance(e, ast.Call) and last_name(e.func) != "range" for e in ast.walk(value))
        for statement, value in found
    )
