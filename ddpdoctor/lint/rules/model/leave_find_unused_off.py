"""A search for unused parameters where there are none.

## What it does
Finds `find_unused_parameters=True` for models of the same file that have one way through their
forward and use every part they register.

## Why is this bad?
The whole graph is walked after every forward, for nothing; and it hides parameters that fall out of
use later, by mistake.

## Example
```python
model = DDP(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), find_unused_parameters=True)
```

## Use instead
```python
model = DDP(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.models import is_straight, model_classes, uses_everything
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, keyword
from ddpdoctor.lint.engine.wrappers import keyword_is
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP302"
NAME = "needless-find-unused"
CONFIDENCE: Confidence = "likely"
WORDS = ("find_unused_parameters",)
ALSO = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield searches that can find nothing."""
    for call in module.wraps:
        model = argument(call, 0, "module")
        value = keyword(call, "find_unused_parameters")
        if model is None or value is None or not keyword_is(call, "find_unused_parameters", True):
            continue
        if "checkpoint(" in module.text or "requires_grad" in module.text:
            continue
        straight = all(is_straight(module, cls) for cls in model_classes(module).values())
        if straight and uses_everything(module, model):
            yield Hit(
                call,
                "find_unused_parameters=True walks the graph of every step, and finds nothing",
                help="leave it off: every part of this model is always used",
                fix=Fix((replace(module, value, "False"),)),
            )
