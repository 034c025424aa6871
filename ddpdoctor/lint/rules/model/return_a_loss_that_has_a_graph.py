"""Constant loss on an empty batch.

## What it does
Finds loss functions that return a constant (`torch.tensor(0.0)`) when a mask or batch is empty.

## Why is this bad?
On that rank `backward()` raises "does not require grad", or leaves every parameter without
gradient; the other ranks wait in the all-reduce.

## Example
```python
def masked_loss(out, mask):
    if not mask.any():
        return torch.tensor(0.0)
    return cross_entropy(out[mask])
```

## Use instead
```python
def masked_loss(out, mask):
    if not mask.any():
        return out.sum() * 0
    return cross_entropy(out[mask])
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP308"
NAME = "no-loss-on-one-rank"
CONFIDENCE: Confidence = "likely"
WORDS = (
    "return torch.tensor",
    "return torch.zeros",
    "return torch.FloatTensor",
)


_MAKERS = ("torch.tensor", "torch.zeros", "torch.zeros_like", "torch.FloatTensor")
_DEFINES = re.compile(r"(def|class) \w*(loss|training_step|criterion)", re.I)
_NAME = re.compile(r"loss|training_step|criterion", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield constant losses that only some ranks return."""
    if "DistributedDataParallel" not in module.project.words or not _DEFINES.search(module.text):
        return
    for node in module.by_kind[ast.Return]:
        assert isinstance(node, ast.Return)
        function = module.function(node)
        if function is None or not _is_constant_tensor(module, node.value):
            continue
        owner = module.class_of(function)
        name = f"{owner.name if owner else ''}.{function.name}"
        if not _NAME.search(name) or function.name.startswith("test"):
            continue
        branch = module.parents[node]
        if isinstance(branch, ast.If) and node in branch.body and _asks_if_empty(branch.test):
            yield Hit(
                node,
                "a rank with nothing to learn from returns a constant loss: no gradient",
                notes=(f"returned if `{text(branch.test)}` (line {branch.lineno})",),
                help="return `output.sum() * 0`, so that every parameter gets a gradient",
            )


def _is_constant_tensor(module: Module, node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Call) or module.names.get(node) not in _MAKERS:
        return False
    return not node.args or isinstance(node.args[0], ast.Constant | ast.List | ast.Name | ast.Tuple)


def _asks_if_empty(test: ast.expr) -> bool:
    shown = text(test, 300)
    return bool(
        re.search(r"not .*\.any\(|\.sum\(\) (==|<=|<) |numel\(\) == 0|len\(.*\) == 0", shown)
        or re.search(r"(num|count|n)_?\w* == 0$", shown)
    )
