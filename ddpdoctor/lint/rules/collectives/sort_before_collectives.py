"""Collectives or parameters in the order of a set.

## What it does
Finds loops over a set (or over `os.listdir`) whose body runs a collective or registers parameters.

## Why is this bad?
The order of a set of strings differs between processes (hash randomisation), that of a folder
between machines: the ranks run the same collectives in different orders, and wait for each other
or mix up what they reduce.

## Example
```python
for name in set(metrics):
    dist.all_reduce(metrics[name])
```

## Use instead
```python
for name in sorted(metrics):
    dist.all_reduce(metrics[name])
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import end_of, start_of
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.rule import Confidence, Edit, Fix, Hit

CODE = "DDP413"
NAME = "unordered-collectives"
CONFIDENCE: Confidence = "certain"
WORDS = (
    "set(",
    "frozenset",
    "listdir",
    "scandir",
    "glob",
    "{",
)
FACTS = ("collectives",)


_REGISTERS = ("register_parameter", "register_module", "add_module", "register_buffer")
_LISTINGS = ("os.listdir", "os.scandir", "glob.glob", "glob.iglob")


def check(module: Module) -> Iterator[Hit]:
    """Yield the loops whose order the ranks do not share."""
    direct = {call for call, _ in module.collectives}
    for loop in module.by_kind[ast.For]:
        assert isinstance(loop, ast.For)
        if not (what := _unordered(module, loop.iter)):
            continue
        for call in module.calls:
            if not any(module.inside(call, each) for each in loop.body):
                continue
            key = module.callee(call)
            reach = module.project.reaches.get(key) if key else None
            registers = isinstance(call.func, ast.Attribute) and call.func.attr in _REGISTERS
            if call in direct or (registers and module.is_distributed) or reach:
                done = "parameters are registered" if registers else "collectives run"
                edits = (
                    Edit(*start_of(module, loop.iter), "sorted("),
                    Edit(*end_of(module, loop.iter), ")"),
                )
                yield Hit(
                    loop.iter,
                    f"{done} in the order of {what}, which differs between ranks",
                    help="sort: `for ... in sorted(...)`",
                    fix=Fix(edits),
                    confidence="likely" if reach and not reach.sure else None,
                )
                break


def _unordered(module: Module, node: ast.expr, depth: int = 5) -> str:
    value = module.value(node) if depth else None
    match value:
        case ast.Set() | ast.SetComp():
            return "a set"
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return "a set"
        case ast.Call() if module.name_of(value.func) in _LISTINGS:
            return "a folder's listing"
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub(), right=right):
            both = (_unordered(module, left, depth - 1), _unordered(module, right, depth - 1))
            return "a set" if "a set" in both else ""
    return ""
