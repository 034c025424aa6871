"""no_sync around half a step.

## What it does
Finds `with model.no_sync():` around a backward whose forward ran outside (no effect), or around a
forward whose backward runs outside (the ranks part).

## Why is this bad?
The forward decides whether the next backward reduces. Around the backward alone `no_sync` does
nothing; around the forward alone the backward outside reduces nothing either.

## Example
```python
loss = model(x)
with model.no_sync():
    loss.backward()
```

## Use instead
```python
with model.no_sync():
    loss = model(x)
    loss.backward()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, last_name, targets
from ddpdoctor.lint.engine.wrappers import without_gradient
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP314"
NAME = "no-sync-wrong-scope"
CONFIDENCE: Confidence = "certain"
WORDS = ("no_sync",)


_HARMLESS = {"backward", "scale", "item", "detach", "append", "print", "update", "float"}


def check(module: Module) -> Iterator[Hit]:
    """Yield no_sync blocks that hold a forward or a backward, not both."""
    for block in module.by_kind[ast.With]:
        assert isinstance(block, ast.With)
        model = _model(module, block)
        if not model:
            continue
        calls = [call for call in module.calls if module.inside(call, *block.body)]
        backward = [call for call in calls if last_name(call.func) == "backward"]
        forward = [call for call in calls if dotted(call.func) == model]
        others = {last_name(call.func) for call in calls} - _HARMLESS
        scope = module.scope(block)
        if backward and not forward and not others:
            yield Hit(
                block.items[0].context_expr,
                f"no_sync around the backward alone has no effect: `{model}(...)` ran before it",
                help="put the forward inside too",
            )
        elif left := _left_for_later(module, block, forward):
            if not without_gradient(module, block):
                yield Hit(
                    block.items[0].context_expr,
                    "the backward of this forward runs outside of no_sync: nothing is reduced",
                    notes=(f"backward() at line {left.lineno}",),
                    help="put the backward inside too, or leave no_sync away",
                )
        elif forward and not backward:
            end = block.end_lineno or 0
            after = [
                call
                for call in module.method_calls("backward")
                if call.lineno > end
                and module.scope(call) is scope
                and module.loops(call)[:1] == module.loops(block)[:1]
                and not any(isinstance(each, ast.With) for each in _between(module, call, scope))
            ]
            if after and not without_gradient(module, block):
                yield Hit(
                    block.items[0].context_expr,
                    "the backward of this forward runs outside of no_sync: nothing is reduced",
                    notes=(f"backward() at line {after[0].lineno}",),
                    help="put the backward inside too, or leave no_sync away",
                )


def _left_for_later(module: Module, block: ast.With, forward: list[ast.Call]) -> ast.Call | None:
    """The backward, right behind the block, of a loss that was last computed inside."""
    inside = {
        dotted(target): node
        for node in module.by_kind[ast.Assign]
        if isinstance(node, ast.Assign) and module.inside(node, *block.body)
        for target in targets(node)
    }
    for call in module.method_calls("backward"):
        name = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        last = inside.get(name)
        if last is None or not any(module.inside(each, last) for each in forward):
            continue
        if module.parents[module.statement(call)] is not module.parents[block]:
            continue
        end = block.end_lineno or 0
        rebound = any(
            end < statement.lineno <= call.lineno for statement, _ in module.bindings(call, name)
        )
        consumed = any(
            isinstance(each, ast.Call)
            and last_name(each.func) == "backward"
            and each.lineno > last.lineno
            for node in block.body
            for each in module.within(node)
        )
        if call.lineno > end and not rebound and not consumed:
            return call
    return None


def _between(module: Module, node: ast.AST, scope: ast.AST) -> Iterator[ast.AST]:
    for each in module.ancestors(node):
        if each is scope:
            return
        yield each


def _model(module: Module, block: ast.With) -> str:
    """The name of the model whose no_sync a block enters, also through a conditional name."""
    for item in block.items:
        value = module.value(item.context_expr) or item.context_expr
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr == "no_sync":
                return dotted(node.value)
    return ""
