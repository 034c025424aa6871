"""State of the wrapper saved.

## What it does
Finds `ddp_model.state_dict()` that goes into `torch.save`, in programs that load a bare model.

## Why is this bad?
Every key begins with `module.`: loaded into a bare model it raises, and with `strict=False`
nothing is loaded at all, silently.

## Example
```python
torch.save(ddp_model.state_dict(), path)
```

## Use instead
```python
torch.save(ddp_model.module.state_dict(), path)
```
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, is_constant, keyword, targets
from ddpdoctor.lint.engine.wrappers import Wrap, holds_wrapper, wraps
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP508"
NAME = "module-prefix"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)

_OF_ITS_OWN = re.compile(r"optim|sched|scaler|ema", re.I)


def check(module: Module) -> Iterator[Hit]:
    """Yield saved states whose keys carry the wrapper's prefix."""
    found = wraps(module)
    if not found or '"module.' in module.text or "'module.'" in module.text:
        return
    if not _loads_bare(module, found):
        return
    for call in module.method_calls("state_dict"):
        assert isinstance(call.func, ast.Attribute)
        wrap = holds_wrapper(module, call.func.value, found)
        if wrap is None or not _is_saved(module, call) or _is_loaded_back(module, wrap, found):
            continue
        loose = any(
            is_constant(keyword(each, "strict"), False)
            for each in module.method_calls("load_state_dict")
        )
        yield Hit(
            call,
            f"the state of the wrapper `{wrap.name}` is saved: every key begins with `module.`",
            notes=("strict=False hides it: nothing is loaded",) if loose else (),
            help=f"`{wrap.name}.module.state_dict()`",
            fix=Fix((replace(module, call.func.value, f"{wrap.name}.module"),), safe=False),
            confidence="certain" if loose else None,
        )


def _loads_bare(module: Module, found: list[Wrap]) -> bool:
    """Whether a bare model loads a state: else the prefix harms nobody."""
    return any(
        isinstance(each.func, ast.Attribute)
        and not holds_wrapper(module, each.func.value, found)
        and not _OF_ITS_OWN.search(dotted(each.func.value))
        for each in module.method_calls("load_state_dict")
    )


def _is_saved(module: Module, call: ast.Call) -> bool:
    saves = module.calls_of("torch.save")
    if any(module.inside(call, each) for each in saves):
        return True
    names = {dotted(target) for target in targets(module.statement(call))}
    return any(each.args and dotted(each.args[0]) in names - {""} for each in saves)


def _is_loaded_back(module: Module, wrap: Wrap, found: list[Wrap]) -> bool:
    """Whether the same wrapper loads what it saved: then the prefix does no harm here."""
    return any(
        isinstance(each.func, ast.Attribute)
        and holds_wrapper(module, each.func.value, found)
        and not is_constant(keyword(each, "strict"), False)
        for each in module.method_calls("load_state_dict")
    )
