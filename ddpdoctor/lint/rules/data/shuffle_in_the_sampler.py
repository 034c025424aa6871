"""shuffle=True together with a sampler.

## What it does
Finds `DataLoader(..., shuffle=True, sampler=...)`.

## Why is this bad?
The loader raises ValueError: "sampler option is mutually exclusive with shuffle".

## Example
```python
DataLoader(data, sampler=DistributedSampler(data), shuffle=True)
```

## Use instead
```python
DataLoader(data, sampler=DistributedSampler(data, shuffle=True))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, is_constant
from ddpdoctor.lint.engine.vocabulary import LOADER
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP209"
NAME = "shuffle-with-sampler"
CONFIDENCE: Confidence = "certain"
WORDS = ("shuffle",)
ALSO = ("sampler",)


def check(module: Module) -> Iterator[Hit]:
    """Yield loaders that are told to shuffle twice."""
    for call in module.calls_of(*LOADER):
        shuffle = argument(call, 2, "shuffle")
        sampler = argument(call, 3, "sampler") or argument(call, 4, "batch_sampler")
        if not is_constant(shuffle, True) or shuffle is None or sampler is None:
            continue
        values = [sampler]
        if isinstance(sampler, ast.Name | ast.Attribute):
            values = [value for _, value in module.bindings(sampler, dotted(sampler))]
        given = [value for value in values if not is_constant(value, None)]
        if values and not given:
            continue
        sure = any(isinstance(value, ast.Call) for value in given)
        yield Hit(
            call,
            "shuffle=True and a sampler exclude each other: DataLoader raises ValueError",
            help="let the sampler shuffle: shuffle=False here",
            fix=Fix((replace(module, shuffle, "False"),)),
            confidence=None if sure else "likely",
        )
