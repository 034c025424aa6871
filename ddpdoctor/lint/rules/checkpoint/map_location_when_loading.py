"""Load without map_location.

## What it does
Finds `torch.load` without `map_location` where every rank runs it.

## Why is this bad?
The tensors go where they were saved, which is cuda:0 for all ranks: N copies on one device, out of
memory there.

## Example
```python
state = torch.load(path)
```

## Use instead
```python
state = torch.load(path, map_location="cpu")
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.lint.edits import add_argument
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import rank_guards
from ddpdoctor.lint.engine.trees import argument, has_star, text
from ddpdoctor.lint.engine.wrappers import is_private
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP510"
NAME = "loads-on-one-device"
CONFIDENCE: Confidence = "likely"
WORDS = ("torch.load",)
ALSO = ("DistributedDataParallel",)

_HOLDS_NO_TENSORS = re.compile(r"scaler|scheduler|rng|sampler|random", re.I)


_HAS_DEVICES = re.compile(r"cuda|nccl|device|xpu|accelerat", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield loads that all go to the device they were saved from."""
    if not module.wraps or not _HAS_DEVICES.search(module.text):
        return
    for call in module.calls_of("torch.load"):
        if argument(call, 1, "map_location") is not None or has_star(call):
            continue
        if is_private(module, call.args[0] if call.args else call):
            continue
        around = f"{text(call, 200)} {text(module.statement(call), 200)}"
        if _HOLDS_NO_TENSORS.search(around):
            continue
        if any(each.side == "main" for each in rank_guards(module, call)):
            continue
        edit = add_argument(module, call, 'map_location="cpu"')
        yield Hit(
            call,
            "every rank loads to the device that it was saved from: N copies on cuda:0",
            help='map_location="cpu" (or this rank\'s own device)',
            fix=Fix((edit,)) if edit else None,
        )
