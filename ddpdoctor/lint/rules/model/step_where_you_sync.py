"""no_sync and the step disagree.

## What it does
Compares the condition that enters `no_sync` with the one that steps the optimizer, where both
count batches modulo k.

## Why is this bad?
If the micro-batch before the step ran inside `no_sync`, the optimizer steps on this rank's own
gradients: the models part, silently.

## Example
```python
sync = i % k == 0
with nullcontext() if sync else model.no_sync():
    model(x).backward()
if (i + 1) % k == 0:
    optimizer.step()
```

## Use instead
```python
sync = (i + 1) % k == 0
with nullcontext() if sync else model.no_sync():
    model(x).backward()
if sync:
    optimizer.step()
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ddpdoctor.lint.engine.guards import guards
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, is_constant, targets
from ddpdoctor.lint.engine.wrappers import alternatives, stepping_branch
from ddpdoctor.lint.rule import Confidence, Hit

CODE = "DDP315"
NAME = "accumulation-off-by-one"
CONFIDENCE: Confidence = "certain"
WORDS = ("no_sync", "require_backward_grad_sync")


@dataclass(frozen=True, slots=True)
class _Modulo:
    """`(index + shift) % every == 0`, or its opposite."""

    index: str
    shift: int
    every: str
    equal: bool


def check(module: Module) -> Iterator[Hit]:
    """Yield steps that do not fall on the synchronising micro-batch."""
    yield from _first_alone(module)
    for node in module.by_kind[ast.Attribute]:
        if not isinstance(node, ast.Attribute) or node.attr != "no_sync":
            continue
        if (inside := _condition(module, node)) is None:
            continue
        uses = [node, *_uses(module, node)]
        loops = next((found for use in uses if (found := module.loops(use))), [])
        branch = stepping_branch(module, loops[0]) if loops else None
        if branch is None:
            continue
        sides = alternatives(module, branch.test)
        if len(sides) > 1 and any(_agrees(_modulo(module, each), inside) for each in sides):
            yield Hit(
                branch.test,
                "the optimizer also steps where no_sync was entered: those gradients stay local",
                notes=(f"no_sync is entered by another condition at line {node.lineno}",),
                help="one condition for both: no_sync exactly where the optimizer does not step",
            )
            continue
        steps = _modulo(module, branch.test)
        if steps is None or (steps.index, steps.every) != (inside.index, inside.every):
            continue
        if not _agrees(steps, inside) and steps.equal and not inside.equal:
            yield Hit(
                branch.test,
                "the optimizer steps on a micro-batch whose gradients were not reduced",
                notes=(f"no_sync is entered by another condition at line {node.lineno}",),
                help="one condition for both: no_sync exactly where the optimizer does not step",
            )


def _first_alone(module: Module) -> Iterator[Hit]:
    """`model.require_backward_grad_sync = i == 0`: the last micro-batches are never reduced."""
    for node in module.by_kind[ast.Assign]:
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not isinstance(target, ast.Attribute) or target.attr != "require_backward_grad_sync":
            continue
        match node.value:
            case ast.Compare(left=ast.Name(id=index), ops=[ast.Eq()], comparators=[first]):
                loop = next(iter(module.loops(node)), None)
                over = isinstance(loop, ast.For) and dotted(loop.target) == index
                if over and is_constant(first, 0):
                    yield Hit(
                        node,
                        "only the first micro-batch is reduced: what is added later stays local",
                        help="synchronise on the last micro-batch of the window",
                    )


def _agrees(steps: _Modulo | None, inside: _Modulo) -> bool:
    """Whether the one condition is the opposite of the other."""
    return steps is not None and steps == replace(inside, equal=not inside.equal)


def _uses(module: Module, node: ast.AST) -> list[ast.AST]:
    """Where a context that was given a name is entered."""
    names = {dotted(target) for target in targets(module.statement(node))}
    return [
        item.context_expr
        for block in module.by_kind[ast.With]
        if isinstance(block, ast.With)
        for item in block.items
        if dotted(item.context_expr) in names
    ]


def _condition(module: Module, node: ast.AST) -> _Modulo | None:
    """When no_sync is entered."""
    for guard in guards(module, node):
        found = _modulo(module, guard.test)
        if found:
            return found if guard.holds else replace(found, equal=not found.equal)
    return None


def _modulo(module: Module, test: ast.expr) -> _Modulo | None:
    value = module.value(test) or test
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        inner = _modulo(module, value.operand)
        return replace(inner, equal=not inner.equal) if inner else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mod):
        found = _parts(value, 0)
        return replace(found, equal=False) if found else None
    if not isinstance(value, ast.Compare) or len(value.ops) != 1:
        return None
    left, right = value.left, value.comparators[0]
    if not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.Mod):
        return None
    if not isinstance(value.ops[0], ast.Eq | ast.NotEq):
        return None
    target = 0
    if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Sub):
        if not is_constant(right.right, 1) or ast.unparse(right.left) != ast.unparse(left.right):
            return None
        target = -1  # i % k == k - 1
    elif not is_constant(right, 0):
        return None
    found = _parts(left, target)
    return replace(found, equal=isinstance(value.ops[0], ast.Eq)) if found else None


def _parts(node: ast.BinOp, target: int) -> _Modulo | None:
    index, shift = node.left, -target
    if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add | ast.Sub):
        if not isinstance(index.right, ast.Constant) or not isinstance(index.right.value, int):
            return None
        shift += index.right.value if isinstance(index.op, ast.Add) else -index.right.value
        index = index.left
    if not dotted(index):
        return None
    return _Modulo(dotted(index), shift, ast.unparse(node.right), True)
