"""Model changed after the wrap.

## What it does
Finds parameters or modules added, replaced or unfrozen after the model was wrapped in DDP.

## Why is this bad?
DDP lists the parameters once, when it is built. What comes later is in no bucket: its gradients
are never reduced, and the ranks part, silently.

## Example
```python
model = DDP(net)
model.module.head = nn.Linear(64, 10)
```

## Use instead
```python
net.head = nn.Linear(64, 10)
model = DDP(net)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.flow import handed
from ddpdoctor.lint.engine.module import Module, params
from ddpdoctor.lint.engine.trees import dotted, is_constant, text
from ddpdoctor.lint.engine.wrappers import holds_wrapper, statements_after, wraps
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP305"
NAME = "late-parameter"
CONFIDENCE: Confidence = "certain"
WORDS = ("DistributedDataParallel",)


_ADDERS = ("add_module", "register_module", "register_parameter", "append", "insert", "extend")


def check(module: Module) -> Iterator[Hit]:
    """Yield changes that come too late for the buckets."""
    yield from _handed_over(module)
    yield from _unfrozen_elsewhere(module)
    for wrap in wraps(module):
        if wrap.handed:
            continue
        scope = module.scope(wrap.statement)
        again = [
            each.lineno
            for each in module.wraps
            if each is not wrap.call and module.scope(each) is scope
        ]
        names = {f"{wrap.name}.module"} | ({wrap.inner} if wrap.inner != wrap.name else set())
        names.discard("")
        for node in statements_after(module, wrap.statement):
            if any(line > getattr(node, "lineno", 0) for line in again):
                continue
            if module.scope(node) is not scope:
                continue
            if what := _change(module, node, names):
                yield Hit(
                    _unfreezing(node) or node,
                    f"{what} after the model was wrapped in DDP: it is never reduced",
                    notes=(f"wrapped at line {wrap.call.lineno}",),
                    help="change the model first, then wrap it (or wrap it again)",
                )


def _handed_over(module: Module) -> Iterator[Hit]:
    """Changes by a function of this file that is given `ddp.module`."""
    found = wraps(module)
    for function, calls in module.callers.items():
        for name in params(function):
            given = [value for _, value in handed(module, function, name)]
            late = [
                value
                for value in given
                if isinstance(value, ast.Attribute)
                and value.attr == "module"
                and holds_wrapper(module, value.value, found)
            ]
            if not late or any(module.scope(each) is function for each in module.wraps):
                continue
            for node in module.within(function):
                if module.scope(node) is function and (what := _change(module, node, {name})):
                    yield Hit(
                        _unfreezing(node) or node,
                        f"{what} after the model was wrapped in DDP: it is never reduced",
                        notes=(f"the wrapped model is handed over at line {calls[0].lineno}",),
                        help="change the model first, then wrap it (or wrap it again)",
                    )


def _unfrozen_elsewhere(module: Module) -> Iterator[Hit]:
    """`for p in trainer.model.module.backbone.parameters(): p.requires_grad = True`."""
    owned = [wrap.name for wrap in wraps(module) if wrap.name.startswith("self.")]
    once = {name.removeprefix("self.") for name in owned if owned.count(name) == 1}
    for loop in module.by_kind[ast.For]:
        assert isinstance(loop, ast.For)
        for node in ast.walk(loop.iter):
            parts = dotted(node).split(".") if isinstance(node, ast.Attribute) else []
            held = any(
                parts[i] in once and parts[i + 1] == "module" and parts[0] != "self"
                for i in range(1, len(parts) - 2)
            )
            if held and (change := _unfreezing(loop)):
                yield Hit(
                    change,
                    "parameters are unfrozen after the model was wrapped in DDP: never reduced",
                    help="wrap the model again after unfreezing",
                    confidence="likely",
                )
                break


def _unfreezing(node: ast.AST) -> ast.stmt | None:
    """The `p.requires_grad = True` in a loop over parameters."""
    if not isinstance(node, ast.For) or not isinstance(node.target, ast.Name):
        return None
    wanted = f"{node.target.id}.requires_grad"
    for each in node.body:
        if not isinstance(each, ast.Assign) or not is_constant(each.value, True):
            continue
        if dotted(each.targets[0]) == wanted:
            return each
    return None


def _change(module: Module, node: ast.AST, names: set[str]) -> str:
    match node:
        case ast.Assign(value=ast.Call() as made, targets=[ast.Attribute() as target]):
            is_module = _makes_module(module, made) and _below(target.value, names)
            return f"`{dotted(target)}` is replaced" if is_module else ""
        case ast.Assign(value=ast.Call() as made, targets=[ast.Subscript(value=owner)]):
            is_module = _makes_module(module, made) and _below(owner, names)
            return f"`{text(node.targets[0])}` is replaced" if is_module else ""
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if _below(owner, names):
            return _called(module, node, owner, method)
        case ast.For():
            is_over_them = any(_below(each, names) for each in ast.walk(node.iter))
            return "parameters are unfrozen" if is_over_them and _unfreezing(node) else ""
    return ""


def _called(module: Module, call: ast.Call, owner: ast.expr, method: str) -> str:
    if method == "requires_grad_":
        unfreezes = not call.args or is_constant(call.args[0], True)
        return f"`{text(owner)}` is unfrozen" if unfreezes else ""
    if method not in _ADDERS:
        return ""
    named = method in ("add_module", "register_module", "register_parameter")
    built = any(_makes_module(module, e) for e in ast.walk(call) if isinstance(e, ast.Call))
    return "a module or parameter is added" if named or built else ""


def _makes_module(module: Module, call: ast.Call) -> bool:
    name = module.names.get(call, "")
    if any(
        each.name == name and any(module.name_of(base) == "torch.nn.Module" for base in each.bases)
        for each in module.classes
    ):
        return True
    return name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()


def _below(node: ast.AST, names: set[str]) -> bool:
    name = dotted(node)
    return bool(name) and any(name == each or name.startswith(f"{each}.") for each in names)
