"""Clipping before unscaling, or inside no_sync.

## What it does
Finds `clip_grad_norm_` before `scaler.unscale_` under automatic mixed precision, and inside
`no_sync`.

## Why is this bad?
Scaled gradients are some 65536 times too large: all of them are clipped, to almost nothing. Inside
`no_sync` each rank clips its own part by another factor.

## Example
```python
scaler.scale(loss).backward()
clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
```

## Use instead
```python
scaler.scale(loss).backward()
scaler.unscale_(optimizer)
clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import insert_line_before
from ddpdoctor.lint.engine.module import Module
from ddpdoctor.lint.engine.trees import dotted, last_name, text
from ddpdoctor.lint.engine.wrappers import stepping_branch
from ddpdoctor.lint.rule import Confidence, Fix, Hit

CODE = "DDP306"
NAME = "clip-before-sync"
CONFIDENCE: Confidence = "certain"
WORDS = ("clip_grad",)
ALSO = (
    "scaler",
    "no_sync",
)


_CLIPS = ("clip_grad_norm_", "clip_grad_value_")


def check(module: Module) -> Iterator[Hit]:
    """Yield clips of scaled, or of not yet reduced, gradients."""
    for call in module.calls:
        if last_name(call.func) not in _CLIPS:
            continue
        if hit := (
            _before_unscale(module, call)
            or _in_no_sync(module, call)
            or _in_every_micro_batch(module, call)
        ):
            yield hit


def _before_unscale(module: Module, call: ast.Call) -> Hit | None:
    scope = module.scope(call)
    here = [each for each in module.calls if module.scope(each) is scope]
    scales = [
        each
        for each in here
        if isinstance(each.func, ast.Attribute)
        and each.func.attr == "backward"
        and isinstance(each.func.value, ast.Call)
        and last_name(each.func.value.func) == "scale"
        and each.lineno < call.lineno
    ]
    if not scales or any(last_name(each.func) == "unscale_" for each in here):
        late = [e for e in here if last_name(e.func) == "unscale_" and e.lineno > call.lineno]
        if not scales or not late or len([e for e in here if last_name(e.func) == "unscale_"]) > 1:
            return None
    steps = [
        each
        for each in here
        if isinstance(each.func, ast.Attribute)
        and each.func.attr == "step"
        and each.args
        and each.lineno > call.lineno
        and "scaler" in dotted(each.func.value).lower()
    ]
    if not steps:
        return None
    assert isinstance(steps[0].func, ast.Attribute)
    line = f"{dotted(steps[0].func.value)}.unscale_({ast.unparse(steps[0].args[0])})"
    alone = isinstance(module.parents[call], ast.Expr | ast.Assign)
    has_late = any(last_name(each.func) == "unscale_" for each in here)
    edit = insert_line_before(module, module.statement(call), line) if alone else None
    return Hit(
        call,
        "gradients are clipped while still scaled: nearly all of them are cut",
        notes=(f"scaled at line {scales[-1].lineno}, unscaled only by step()",),
        help=f"`{line}` before the clip",
        fix=Fix((edit,)) if edit and not has_late else None,
    )


def _in_every_micro_batch(module: Module, call: ast.Call) -> Hit | None:
    """A clip that runs where the optimizer does not step yet, in a loop that uses no_sync."""
    loops = module.loops(call)
    if not loops or not any(
        isinstance(each, ast.Attribute) and each.attr == "no_sync"
        for each in module.within(loops[0])
    ):
        return None
    branch = stepping_branch(module, loops[0])
    if branch is None or module.inside(call, branch) or list(_branches(module, call, loops[0])):
        return None
    return Hit(
        call,
        "gradients are clipped on every micro-batch, most of them before they are reduced",
        notes=(f"the optimizer steps only `if {text(branch.test)}` (line {branch.lineno})",),
        help="clip once, on the micro-batch that steps the optimizer",
    )


def _branches(module: Module, node: ast.AST, loop: ast.AST) -> Iterator[ast.AST]:
    """The branches between a node and its loop."""
    for each in module.ancestors(node):
        if each is loop:
            return
        if isinstance(each, ast.If):
            yield each


def _in_no_sync(module: Module, call: ast.Call) -> Hit | None:
    for each in module.ancestors(call):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return None
        if isinstance(each, ast.With):
            for item in each.items:
                context = item.context_expr
                if isinstance(context, ast.Call) and last_name(context.func) == "no_sync":
                    return Hit(
                        call,
                        "gradients are clipped inside no_sync, before they are reduced",
                        help="clip once, on the micro-batch that steps the optimizer",
                    )
    return None
