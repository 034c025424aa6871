"""mp.spawn without a main guard.

## What it does
Finds `mp.spawn` at the top level of a module, outside of `if __name__ == "__main__":`.

## Why is this bad?
Each child imports the module anew, and starts children of its own: RuntimeError "An attempt has
been made to start a new process before the current process has finished its bootstrapping phase".

## Example
```python
mp.spawn(train, nprocs=4)
```

## Use instead
```python
if __name__ == "__main__":
    mp.spawn(train, nprocs=4)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import is_constant, keyword, text
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP113"
NAME = "unguarded-spawn"
CONFIDENCE: Confidence = "certain"
WORDS = (
    "spawn",
    "start_processes",
)
ALSO = ("multiprocessing",)


_STARTERS = (
    "torch.multiprocessing.spawn",
    "torch.multiprocessing.spawn.spawn",
    "torch.multiprocessing.start_processes",
)


def check(module: Module) -> Iterator[Hit]:
    """Yield process starts that run again in every child."""
    if module.path.endswith(".ipynb"):
        return
    for call in module.calls_of(*_STARTERS):
        if module.scope(call) is not module.tree or is_constant(
            keyword(call, "start_method"), "fork"
        ):
            continue
        if any("__name__" in text(each.test) for each in guards(module, call)):
            continue
        yield Hit(
            call,
            "children that import this module start children again: no `__main__` guard",
            help='put it under `if __name__ == "__main__":`',
        )
