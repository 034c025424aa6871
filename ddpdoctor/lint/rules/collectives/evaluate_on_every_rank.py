"""Forward through the wrapper on some ranks only.

## What it does
Finds calls of a DDP wrapper, or of a function that calls it, under a condition on the rank.

## Why is this bad?
The wrapper's forward broadcasts buffers (batch-norm statistics) from rank 0, in `eval()` and under
`no_grad()` too, and prepares the reducer. With buffers, the rank that is alone in it waits for the
others. A model without buffers gets away with it.

## Example
```python
if rank == 0:
    accuracy = evaluate(ddp_model, loader)
```

## Use instead
```python
if rank == 0:
    accuracy = evaluate(ddp_model.module, loader)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.rank import RankGuard, rank_guards
from ddpdoctor.lint.engine.wrappers import Wrap, holds_wrapper, keyword_is, wraps
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP406"
NAME = "rank0-only-evaluation"
CONFIDENCE: Confidence = "likely"
WORDS = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield the forwards that only some ranks run."""
    found = wraps(module)
    for call in module.calls:
        wrap, through = _forwarded(module, call, found)
        if wrap is None or keyword_is(wrap.call, "broadcast_buffers", False):
            continue
        guard = next((each for each in rank_guards(module, call) if _counts(each)), None)
        if guard is None or _is_met(module, call, guard, found):
            continue
        buffers = "BatchNorm" in module.text or "register_buffer" in module.text
        yield Hit(
            call,
            f"the DDP wrapper `{wrap.name}` runs its forward on some ranks only{through}",
            notes=(
                f"it {guard.describe()}",
                "forward broadcasts buffers from rank 0, in eval() too; harmless without buffers",
            ),
            help=f"pass `{wrap.name}.module` for evaluation on one rank, or evaluate on every rank",
            confidence="certain" if buffers and guard.test.pure else None,
        )


def _counts(guard: RankGuard) -> bool:
    return guard.guard.kind != "exit" or guard.test.pure


def _forwarded(module: Module, call: ast.Call, found: list[Wrap]) -> tuple[Wrap | None, str]:
    if wrap := holds_wrapper(module, call.func, found):
        return wrap, ""
    key = module.callee(call)
    names = module.project.forwards.get(key) if key else None
    if not key or not names:
        return None, ""
    given = [(str(i), value) for i, value in enumerate(call.args)]
    given += [(each.arg, each.value) for each in call.keywords if each.arg]
    for position, value in given:
        wrap = holds_wrapper(module, value, found)
        if wrap and module.project.parameter(key, position) in names:
            return wrap, f", inside {key[1]}()"
    return None, ""


def _is_met(module: Module, call: ast.Call, guard: RankGuard, found: list[Wrap]) -> bool:
    """Whether the other arm of the same `if` runs the wrapper too."""
    node = guard.guard.node
    if not isinstance(node, ast.If) or not node.orelse:
        return False
    other = node.orelse if guard.guard.holds else node.body
    return any(
        module.inside(each, *other) and _forwarded(module, each, found)[0] for each in module.calls
    )
