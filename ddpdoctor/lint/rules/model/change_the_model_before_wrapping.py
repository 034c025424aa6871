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

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, is_constant, text
from ddpdoctor.lint.engine.wrappers import statements_after, wraps
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP305"
NAME = "late-parameter"
CONFIDENCE: Confidence = "certain"
WORDS = ("DistributedDataParallel",)


_ADDERS = ("add_module", "register_module", "register_parameter", "append", "insert", "extend")


def check(module: Module) -> Iterator[Hit]:
    """Yield changes that come too late for the buckets."""
    for wrap in wraps(module):
        scope = module.scope(wrap.call)
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
                    node,
                    f"{what} after the model was wrapped in DDP: it is never reduced",
                    notes=(f"wrapped at line {wrap.call.lineno}",),
                    help="change the model first, then wrap it (or wrap it again)",
                )


def _change(module: Module, node: ast.AST, names: set[str]) -> str:
    match node:
        case ast.Assign(value=ast.Call() as made, targets=[ast.Attribute() as target]):
            is_module = _makes_module(module, made) and _below(target.value, names)
            return f"`{dotted(target)}` is replaced" if is_module else ""
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if _below(owner, names):
            return _called(module, node, owner, method)
        case ast.For(target=ast.Name(id=name), body=body):
            is_over_them = any(_below(each, names) for each in ast.walk(node.iter))
            unfreezes = any(
                isinstance(each, ast.Assign)
                and is_constant(each.value, True)
                and dotted(each.targets[0]) == f"{name}.requires_grad"
                for each in body
            )
            return "parameters are unfrozen" if is_over_them and unfreezes else ""
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
    return name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()


def _below(node: ast.AST, names: set[str]) -> bool:
    name = dotted(node)
    return bool(name) and any(name == each or name.startswith(f"{each}.") for each in names)
