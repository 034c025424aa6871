"""Arccos of an unclamped value.

## What it does
Finds `torch.acos` / `arccos` of a dot product or quotient that is not clamped, in a project that
uses DDP.

## Why is this bad?
Rounding puts a cosine at 1.0000001: NaN. The all-reduce spreads one rank's NaN to all; and at
exactly 1 the gradient is infinite.

## Example
```python
angle = torch.acos((u * v).sum(-1))
```

## Use instead
```python
angle = torch.acos((u * v).sum(-1).clamp(-1 + 1e-7, 1 - 1e-7))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import last_name, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP606"
NAME = "unprotected-arccos"
CONFIDENCE: Confidence = "likely"
WORDS = ("torch.acos(", "torch.arccos(", ".acos()", ".arccos()")


_NAMES = ("torch.acos", "torch.arccos")
_PRODUCTS = {"sum", "dot", "einsum", "matmul", "cosine_similarity", "bmm"}
_PROTECTS = ("clamp", "clip", "clamp_", "tanh", "cos", "sigmoid", "hardtanh", "where", "minimum")


def check(module: Module) -> Iterator[Hit]:
    """Yield arccosines that rounding can push out of their domain."""
    if "DistributedDataParallel" not in module.project.words:
        return
    for call in module.calls:
        if module.names.get(call) in _NAMES and call.args:
            argument: ast.expr = call.args[0]
        elif isinstance(call.func, ast.Attribute) and call.func.attr in ("acos", "arccos"):
            if call.args or module.name_of(call.func.value) in ("torch", "numpy", "math"):
                continue
            argument = call.func.value
        else:
            continue
        value = module.value(argument) or argument
        if isinstance(value, ast.Constant | ast.Name | ast.Attribute):
            continue
        used = {last_name(each.func) for each in ast.walk(value) if isinstance(each, ast.Call)}
        if not used & set(_PROTECTS) and _is_cosine(value, used):
            yield Hit(
                call,
                "arccos of a value that rounding can push beyond 1: NaN on one rank, then on all",
                help="clamp to [-1 + eps, 1 - eps] first",
            )


def _is_cosine(value: ast.expr, used: set[str]) -> bool:
    """Whether the value is computed as cosines are: a sum of products, or by a norm."""
    normalised = "norm" in text(value, 300).lower() or any(
        isinstance(each, ast.BinOp) and isinstance(each.op, ast.MatMult) for each in ast.walk(value)
    )
    return normalised or bool(used & _PRODUCTS)
