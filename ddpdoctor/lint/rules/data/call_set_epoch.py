"""No set_epoch anywhere.

## What it does
Finds a shuffling `DistributedSampler` for training in a project that never calls `set_epoch`.

## Why is this bad?
The sampler shuffles with `seed + epoch`, and the epoch stays 0: every epoch has the same order.

## Example
```python
for epoch in range(epochs):
    for batch in loader:
        ...
```

## Use instead
```python
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        ...
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import insert_line_before
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import argument, dotted, has_star, is_constant, targets, text
from ddpdoctor.lint.engine.vocabulary import SAMPLER
from ddpdoctor.lint.engine.wrappers import keyword_is
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP203"
NAME = "missing-set-epoch"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedSampler",)


_OTHERS = {
    "lightning",
    "accelerate",
    "ignite",
    "import Trainer",
    "transformers",
    "mmengine",
    "deepspeed",
}
_EVALUATION = ("val", "test", "eval", "dev", "infer", "pred")


def check(module: Module) -> Iterator[Hit]:
    """Yield training samplers that shuffle alike in every epoch."""
    words = module.words
    if "set_epoch" in words or ".backward(" not in words or words & _OTHERS:
        return
    for call in module.calls_of(*SAMPLER):
        if keyword_is(call, "shuffle", False) or has_star(call):
            continue
        shuffle = argument(call, 3, "shuffle")
        if shuffle is not None and not is_constant(shuffle, True):
            continue
        bound = [dotted(target) for target in targets(module.statement(call))]
        around = " ".join([*bound, module.qualname(call), *(text(each) for each in call.args)])
        if any(word in around.lower() for word in _EVALUATION):
            continue
        yield Hit(
            call,
            "nothing in this project calls set_epoch(): every epoch has the same order",
            help="`sampler.set_epoch(epoch)` as the first line of the epoch loop",
            fix=_fix(module, call, bound),
        )


def _fix(module: Module, call: ast.Call, bound: list[str]) -> Fix | None:
    """The line at the top of the epoch loop, where the loop stands in the same function."""
    if len(bound) != 1 or not bound[0]:
        return None
    scope = module.scope(call)
    for loop in module.by_kind[ast.For]:
        assert isinstance(loop, ast.For)
        if not isinstance(loop.target, ast.Name) or "epoch" not in loop.target.id:
            continue
        if module.scope(loop) is scope and loop.lineno > call.lineno and not module.loops(loop):
            line = f"{bound[0]}.set_epoch({loop.target.id})"
            edit = insert_line_before(module, loop.body[0], line)
            return Fix((edit,)) if edit and not _may_lack(module, call) else None
    return None


def _may_lack(module: Module, call: ast.Call) -> bool:
    """Whether the sampler is only built under a condition: then the line needs one too."""
    statement = module.statement(call)
    return isinstance(module.parents[statement], ast.If) or isinstance(
        module.parents[call], ast.IfExp
    )
