"""Training forward past the wrapper.

## What it does
Finds `ddp_model.module(x)`, and calls of the bare model after it was wrapped, where gradients are
wanted. (`ddp_model.forward(x)` is fine, and not flagged.)

## Why is this bad?
The wrapper's forward prepares the reduction of gradients. Past it, each rank trains on its own
data alone, and the models part, silently.

## Example
```python
ddp_model = DDP(net)
loss = criterion(ddp_model.module(x), y)
loss.backward()
```

## Use instead
```python
loss = criterion(ddp_model(x), y)
loss.backward()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, targets, text
from ddpdoctor.lint.engine.wrappers import Wrap, holds_wrapper, without_gradient, wraps
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP303"
NAME = "bypassed-wrapper"
CONFIDENCE: Confidence = "certain"
WORDS = ("DistributedDataParallel",)


def check(module: Module) -> Iterator[Hit]:
    """Yield training forwards that DDP does not see."""
    found = wraps(module)
    for call in module.calls:
        if hit := _by_method(module, call, found):
            yield hit
            continue
        inner = call.func
        if isinstance(inner, ast.Attribute) and inner.attr == "forward":
            inner = inner.value
        if isinstance(inner, ast.Attribute) and inner.attr == "module":
            wrap = holds_wrapper(module, inner.value, found)
            if wrap and not without_gradient(module, call) and _trains(module, call):
                yield Hit(
                    call,
                    f"`{text(inner)}(...)` bypasses DDP: its gradients are never reduced",
                    notes=(f"`{wrap.name}` is the DDP wrapper (line {wrap.call.lineno})",),
                    help=f"call `{wrap.name}(...)`",
                    fix=Fix((replace(module, call.func, wrap.name),)),
                    confidence="likely" if wrap.handed else None,
                )
            continue
        wrap = _bare(module, inner, found)
        if wrap and not without_gradient(module, call) and _trains(module, call):
            yield Hit(
                call,
                f"`{wrap.inner}` was wrapped as `{wrap.name}`: a forward on it is not reduced",
                notes=(f"wrapped at line {wrap.call.lineno}",),
                help=f"call `{wrap.name}(...)`",
                fix=Fix((replace(module, inner, wrap.name),)),
            )


def _by_method(module: Module, call: ast.Call, found: list[Wrap]) -> Hit | None:
    """`loss = ddp.module.training_loss(x)`, whose backward follows, and no forward by the wrapper.

    A forward by the wrapper in the same function would have prepared the reducer.
    """
    match call.func:
        case ast.Attribute(value=ast.Attribute(value=holder, attr="module"), attr=method):
            wrap = holds_wrapper(module, holder, found)
        case _:
            return None
    if wrap is None or method == "forward" or without_gradient(module, call):
        return None
    scope = module.scope(call)
    names = {dotted(target) for target in targets(module.statement(call))} - {""}
    trained = any(
        module.scope(each) is scope and _receiver(each) in names and each.lineno >= call.lineno
        for each in module.method_calls("backward")
    )
    prepared = any(
        module.scope(each) is scope and holds_wrapper(module, each.func, found)
        for each in module.calls
    )
    if not trained or prepared:
        return None
    return Hit(
        call,
        f"`{text(call.func)}(...)` bypasses DDP: its gradients are never reduced",
        notes=(f"`{wrap.name}` is the DDP wrapper (line {wrap.call.lineno})",),
        help="compute the loss in forward(), or from what the wrapper's forward returns",
        confidence="likely" if wrap.handed else None,
    )


def _receiver(call: ast.Call) -> str:
    return dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _bare(module: Module, node: ast.expr, found: list[Wrap]) -> Wrap | None:
    """The wrap whose inner model is called after it, in the same function."""
    name = dotted(node)
    for wrap in found:
        if name and name == wrap.inner != wrap.name and module.scope(node) is wrap.owner:
            later = node.lineno > (wrap.statement.end_lineno or 0)
            conditional = isinstance(module.parents[wrap.statement], ast.If)
            rebound = any(
                statement.lineno > wrap.call.lineno for statement, _ in module.bindings(node, name)
            )
            if later and not conditional and not rebound:
                return wrap
    return None


def _trains(module: Module, call: ast.Call) -> bool:
    """Whether a backward follows in the same function."""
    scope = module.scope(call)
    return any(
        module.scope(each) is scope and each.lineno >= call.lineno
        for each in module.method_calls("backward")
    )
