"""Subgroup without the timeout of its parent.

## What it does
Finds `new_group` without `timeout=` where `init_process_group` was given one, and timeouts that
are plain numbers.

## Why is this bad?
A new group does not inherit the timeout: with a world timeout of 8 s a subgroup still waits 30
minutes (measured, gloo). A number instead of a `timedelta` raises TypeError.

## Example
```python
dist.init_process_group("gloo", timeout=timedelta(minutes=2))
pair = dist.new_group([0, 1])
```

## Use instead
```python
dist.init_process_group("gloo", timeout=timedelta(minutes=2))
pair = dist.new_group([0, 1], timeout=timedelta(minutes=2))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, has_star, keyword
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP415"
NAME = "subgroup-default-timeout"
CONFIDENCE: Confidence = "likely"
WORDS = ("timeout",)
ALSO = (
    "new_group",
    "init_process_group",
)


_INIT = "torch.distributed.init_process_group"


def check(module: Module) -> Iterator[Hit]:
    """Yield subgroups that fall back to the default timeout, and timeouts of the wrong type."""
    inits = module.calls_of(_INIT)
    makers = module.calls_of("torch.distributed.new_group")
    for call in (*inits, *makers):
        timeout = keyword(call, "timeout")
        if isinstance(timeout, ast.Constant) and isinstance(timeout.value, int | float):
            yield Hit(
                timeout,
                "timeout is a number: it must be a timedelta, a number raises TypeError",
                help=f"timeout=timedelta(seconds={timeout.value})",
                confidence="certain",
            )
    timed = [call for call in inits if keyword(call, "timeout") is not None]
    if not timed:
        return
    for call in makers:
        if argument(call, 1, "timeout") is None and not has_star(call):
            yield Hit(
                call,
                "this group does not inherit the timeout given to init_process_group",
                notes=(f"init_process_group(timeout=...) is at line {timed[0].lineno}",),
                help="pass the same `timeout=` to new_group",
            )
