"""EMA copied before the wrap.

## What it does
Finds an averaged copy of the model (`deepcopy`, `AveragedModel`, an EMA class) that is made before
the model is wrapped in DDP in the same function.

## Why is this bad?
DDP broadcasts rank 0's weights when it is built. A copy made earlier keeps this rank's own random
start, so that the average differs between ranks.

## Example
```python
ema = copy.deepcopy(net)
model = DDP(net)
```

## Use instead
```python
model = DDP(net)
ema = copy.deepcopy(model.module)
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, targets
from ddpdoctor.lint.engine.wrappers import wraps
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP506"
NAME = "ema-before-wrap"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)


_NAME = re.compile(r"(^|[._])ema|ema($|_)|averaged?_?model|teacher", re.I)
_COPIES = re.compile(f"deepcopy$|{_NAME.pattern}", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield averages that begin before the ranks are alike."""
    loads = {call.lineno for call in module.method_calls("load_state_dict")}
    copies = [
        (call, name) for call, name in module.names.items() if call.args and _COPIES.search(name)
    ]
    for wrap in wraps(module):
        for call, made in copies:
            if not wrap.inner or dotted(call.args[0]) != wrap.inner:
                continue
            if call.lineno >= wrap.call.lineno or module.scope(call) is not module.scope(wrap.call):
                continue
            bound = [dotted(target) for target in targets(module.statement(call))]
            is_copy = made in ("copy.deepcopy", "deepcopy") and any(_NAME.search(b) for b in bound)
            if not is_copy and not _NAME.search(made.rpartition(".")[2]):
                continue
            if any(call.lineno < line for line in loads) or "manual_seed" in module.project.words:
                confidence: Confidence | None = "likely"
            else:
                confidence = None
            yield Hit(
                call,
                "the average is copied before DDP has made the ranks' weights alike",
                notes=(f"the model is wrapped at line {wrap.call.lineno}",),
                help=f"build it after the wrap, from `{wrap.name}.module`",
                confidence=confidence,
            )
