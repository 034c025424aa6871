"""Gathered features without gradient in a loss.

## What it does
Finds the output of `all_gather` in a loss that is backwarded, where the own part was not put back
and `torch.distributed.nn` is not used.

## Why is this bad?
The collective copies values, not graphs: the gathered tensor has no gradient at all, also for this
rank's own features. The contrastive term trains one side only, or nothing.

## Example
```python
dist.all_gather(parts, features)
loss = contrastive(features, torch.cat(parts))
loss.backward()
```

## Use instead
```python
dist.all_gather(parts, features)
parts[dist.get_rank()] = features
loss = contrastive(features, torch.cat(parts))
loss.backward()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import Function, argument, dotted, text
from ddpdoctor.lint.engine.wrappers import holds_wrapper, without_gradient, wraps
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP316"
NAME = "gathered-without-gradient"
CONFIDENCE: Confidence = "likely"
WORDS = ("all_gather",)
ALSO = (".backward(",)
FACTS = ("collectives",)

_GATHERS = ("torch.distributed.all_gather", "torch.distributed.all_gather_into_tensor")


def check(module: Module) -> Iterator[Hit]:
    """Yield gathers whose output is trained on."""
    for call in module.calls_of(*_GATHERS):
        own = argument(call, 1, "tensor") or argument(call, 1, "input_tensor")
        out = argument(call, 0, "tensor_list") or argument(call, 0, "output_tensor")
        function = module.function(call)
        if out is None or own is None or not dotted(out) or without_gradient(module, call):
            continue
        if "detach" in text(own, 200) or _is_put_back(module, call, dotted(out)):
            continue
        direct = _is_forwarded(module, own) and _is_trained_on(module, call, dotted(out))
        if direct or (
            function is not None and _is_returned_to_a_loss(module, function, dotted(out))
        ):
            yield Hit(
                call,
                f"`{text(out, 40)}` has no gradient, and the loss is computed from it",
                help="put the own part back, or use torch.distributed.nn.functional.all_gather",
            )


def _is_put_back(module: Module, call: ast.Call, name: str) -> bool:
    """Whether `out[rank] = x` follows, or the function is one of an autograd.Function."""
    scope = module.scope(call)
    owner = module.class_of(call)
    if owner is not None and any("Function" in text(base) for base in owner.bases):
        return True
    return any(
        isinstance(each, ast.Subscript)
        and isinstance(each.ctx, ast.Store)
        and dotted(each.value) == name
        and module.scope(each) is scope
        for each in module.by_kind[ast.Subscript]
    )


def _is_trained_on(module: Module, call: ast.Call, name: str) -> bool:
    scope = module.scope(call)
    return any(
        name in used for used in _losses(module) if used.scope is scope and used.line > call.lineno
    )


def _is_returned_to_a_loss(module: Module, function: Function, name: str) -> bool:
    returns = [
        each
        for each in module.by_kind[ast.Return]
        if isinstance(each, ast.Return) and module.function(each) is function
    ]
    if not any(
        each.value is not None and name in _names_below(module, each.value) for each in returns
    ):
        return False
    for call in module.callers.get(function, ()):
        given = [*call.args, *(each.value for each in call.keywords)]
        if any("detach" in text(each, 200) for each in given) or without_gradient(module, call):
            continue
        if not any(_is_forwarded(module, each) for each in given):
            continue
        if any(call in used.calls for used in _losses(module)):
            return True
    return False


def _is_forwarded(module: Module, value: ast.expr) -> bool:
    """Whether a value comes out of a wrapper's forward, and so has a gradient to lose."""
    calls: set[ast.AST] = set()
    _names_below(module, value, calls)
    found = wraps(module)
    return any(isinstance(c, ast.Call) and holds_wrapper(module, c.func, found) for c in calls)


class _Used:
    """What a backwarded loss is computed from, in its own function."""

    def __init__(self, module: Module, call: ast.Call, loss: ast.expr) -> None:
        self.scope = module.scope(call)
        self.line = call.lineno
        self.calls: set[ast.AST] = set()
        self.names = _names_below(module, loss, self.calls)

    def __contains__(self, name: str) -> bool:
        return name in self.names


def _losses(module: Module) -> list[_Used]:
    return [
        _Used(module, call, call.func.value)
        for call in module.method_calls("backward")
        if isinstance(call.func, ast.Attribute)
    ]


def _names_below(module: Module, node: ast.expr, calls: set[ast.AST] | None = None) -> set[str]:
    """The names that a value is computed from, through the bindings of its function."""
    found: set[str] = set()
    stack = [node]
    while stack:
        for each in module.within(stack.pop()):
            if calls is not None and isinstance(each, ast.Call):
                calls.add(each)
            if not isinstance(each, ast.Name | ast.Attribute):
                continue
            name = dotted(each)
            if name and name not in found:
                found.add(name)
                stack.extend(value for _, value in module.bindings(each, name))
    return found
