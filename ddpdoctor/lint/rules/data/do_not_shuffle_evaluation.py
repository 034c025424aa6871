"""Shuffling sampler for evaluation.

## What it does
Finds a `DistributedSampler` for validation or test without `shuffle=False`.

## Why is this bad?
It shuffles by default, and it pads the last shard with repeated samples: the metric counts some
samples twice, other ones each time.

## Example
```python
val_sampler = DistributedSampler(val_set)
```

## Use instead
```python
val_sampler = DistributedSampler(val_set, shuffle=False)
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.lint.edits import add_argument
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, has_star, targets
from ddpdoctor.lint.engine.vocabulary import SAMPLER
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP208"
NAME = "padded-evaluation"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedSampler",)


_EVALUATION = re.compile(r"(^|[_.])(val|valid|validation|test|eval|evaluation|dev)($|[_.s])", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield evaluation samplers that shuffle."""
    for call in module.calls_of(*SAMPLER):
        if argument(call, 3, "shuffle") is not None or has_star(call) or not call.args:
            continue
        names = [dotted(target) for target in targets(module.statement(call))]
        names.append(dotted(call.args[0]))
        if not any(_EVALUATION.search(name) for name in names):
            continue
        edit = add_argument(module, call, "shuffle=False")
        yield Hit(
            call,
            "this evaluation sampler shuffles, and pads with samples that then count twice",
            help="shuffle=False; for an exact metric use shards without padding",
            fix=Fix((edit,)) if edit else None,
        )
