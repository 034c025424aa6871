"""torch.autograd.grad over a wrapper's parameters.

## What it does
Finds `torch.autograd.grad(..., ddp_model.parameters())`.

## Why is this bad?
DDP reduces in hooks that only `backward()` fires. The gradients are this rank's own, and nothing
says so.

## Example
```python
grads = torch.autograd.grad(loss, ddp_model.parameters())
```

## Use instead
```python
loss.backward()
grads = [p.grad for p in ddp_model.parameters()]
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, is_constant, keyword
from ddpdoctor.lint.engine.wrappers import holds_wrapper, wraps
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP313"
NAME = "autograd-grad-bypass"
CONFIDENCE: Confidence = "certain"
WORDS = ("autograd.grad",)
ALSO = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield gradients that are taken past the reducer."""
    found = wraps(module)
    for call in module.calls_of("torch.autograd.grad"):
        inputs = argument(call, 1, "inputs")
        if inputs is None or is_constant(keyword(call, "create_graph"), True):
            continue
        value = module.value(inputs) or inputs
        for node in ast.walk(value):
            if not isinstance(node, ast.Attribute) or node.attr not in ("parameters", "module"):
                continue
            wrap = holds_wrapper(module, node.value, found)
            if wrap is not None:
                yield Hit(
                    call,
                    f"autograd.grad over the parameters of `{wrap.name}` is not reduced over ranks",
                    help="use backward(), or all_reduce the gradients yourself",
                )
                break
