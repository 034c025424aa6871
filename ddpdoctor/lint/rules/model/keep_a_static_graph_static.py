"""A static graph that changes.

## What it does
Finds `static_graph=True` for a model of the same file whose forward uses one of its parts only if
an argument says so.

## Why is this bad?
DDP records in the first step which parameters take part, and expects the same for ever: "Your
training graph has changed in this iteration".

## Example
```python
def forward(self, x, with_auxiliary):
    h = self.body(x)
    return self.auxiliary(h) if with_auxiliary else self.main(h)

model = DDP(TwoHeads(), static_graph=True)
```

## Use instead
```python
model = DDP(TwoHeads(), find_unused_parameters=True)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import origins
from ddpdoctor.lint.engine.models import model_classes, switches
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, last_name
from ddpdoctor.lint.engine.wrappers import keyword_is
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP317"
NAME = "static-graph-changed"
CONFIDENCE: Confidence = "likely"
WORDS = ("static_graph",)
ALSO = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield promises that a forward does not keep."""
    known = model_classes(module)
    for call in module.wraps:
        model = argument(call, 0, "module")
        if model is None or not keyword_is(call, "static_graph", True):
            continue
        made = [
            last_name(each.func)
            for each in origins(module, model)
            if isinstance(each, ast.Call) and last_name(each.func) in known
        ]
        for name in made[:1]:
            if switch := switches(module, known[name]):
                line = getattr(switch, "lineno", 0)
                yield Hit(
                    call,
                    f"static_graph=True, but an argument decides which parts `{name}` uses",
                    notes=(f"in its forward, line {line}",),
                    help="find_unused_parameters=True, or two wrappers",
                )
