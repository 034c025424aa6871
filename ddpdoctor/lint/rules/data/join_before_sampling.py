"""Sampler before the process group.

## What it does
Finds a `DistributedSampler` built, directly or in a function that is called, before
`init_process_group` in the same function.

## Why is this bad?
Without `num_replicas` and `rank` the sampler asks the default process group, which does not exist
yet: "Default process group has not been initialized".

## Example
```python
loader = make_loader()          # builds a DistributedSampler
dist.init_process_group("gloo")
```

## Use instead
```python
dist.init_process_group("gloo")
loader = make_loader()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import text
from ddpdoctor.lint.engine.vocabulary import SAMPLER
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP201"
NAME = "premature-sampler"
CONFIDENCE: Confidence = "certain"
FACTS = ("sampler",)


def check(module: Module) -> Iterator[Hit]:
    """Yield samplers that are built before the group they ask."""
    first_init: dict[ast.AST, ast.Call] = {}
    for call in module.calls:
        if module.names.get(call) in _INIT or _does(module, call, "init"):
            first_init.setdefault(module.scope(call), call)
    for call in module.calls:
        init = first_init.get(module.scope(call))
        if init is None or init.lineno <= call.lineno or _apart(module, call, init):
            continue
        direct = module.names.get(call) in SAMPLER and _asks(call)
        chain = () if direct else _does(module, call, "sampler")
        if not direct and (not chain or _does(module, call, "init")):
            continue
        guarded = any("is_initialized" in text(each.test) for each in guards(module, call))
        if guarded or any(init is each for each in ast.walk(call)):
            continue
        yield Hit(
            call,
            "a DistributedSampler is built here, before the process group exists",
            notes=(*chain, f"the group is initialised at line {init.lineno}"),
            help="initialise the process group first, or pass num_replicas and rank",
        )


_INIT = ("torch.distributed.init_process_group",)


def _asks(call: ast.Call) -> bool:
    given = {each.arg for each in call.keywords}
    return not given & {"num_replicas", "rank", None} and len(call.args) < 2


def _does(module: Module, call: ast.Call, effect: str) -> tuple[str, ...]:
    key = module.callee(call)
    return module.project.effects[effect].get(key, ()) if key else ()


def _apart(module: Module, one: ast.AST, other: ast.AST) -> bool:
    """Whether the two stand in different arms of one `if`, or in a handler of each other's try."""
    for each in module.ancestors(one):
        if isinstance(each, ast.If):
            arms = (each.body, each.orelse)
            if any(
                module.inside(one, *a) and module.inside(other, *b)
                for a, b in (arms, arms[::-1])
                if a and b
            ):
                return True
    return False
