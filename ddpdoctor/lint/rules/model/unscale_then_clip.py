"""Clipping before unscaling, inside no_sync, or before the gradients are averaged by hand.

## What it does
Finds `clip_grad_norm_` before `scaler.unscale_` under automatic mixed precision, inside `no_sync`,
in each of the parts that Accelerate accumulates, and before a collective that reduces the same
gradients.

## Why is this bad?
Scaled gradients are some 65536 times too large: all of them are clipped, to almost nothing. Before
they are reduced each rank clips its own part by another factor: their mean points elsewhere.

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
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Step, events
from ddpdoctor.lint.engine.interpreter.values import (
    EVERYONE,
    NONE,
    Ref,
    Term,
    Value,
    What,
    term,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.reducing import unreduced
from ddpdoctor.lint.engine.queries.wrapping import origins, parts, weights_in, wrappers
from ddpdoctor.lint.rule import About, Fix, Hit, Related

ABOUT = About(code="DDP306", name="clip-before-sync", confidence="certain")

_IS_LAST = term("alike", "Accelerator.sync_gradients")
_REDUCING = ("all_reduce", "reduce", "reduce_scatter", "all_gather", "all_gather_into_tensor")


def check(run: Run) -> Iterator[Hit]:
    """Yield clips of scaled, or of not yet reduced, gradients."""
    for each in unreduced(run):
        if each.event.kind == "clip":
            yield Hit(
                each.event.node,
                "gradients are clipped before they are reduced: each rank cuts its own part",
                notes=(Related.at(each.by.place, "no_sync keeps their backward back"),),
                help="clip once, on the micro-batch that steps the optimizer",
                path=each.event.path,
            )
    yield from _clipped_then_averaged(run)
    yield from _clipped_in_each_part(run)
    order = [event for event, _ in events(run.root, "clip", "step", "backward", "unscale")]
    for index, event in enumerate(order):
        if event.kind != "clip":
            continue
        scaled = _scaled(run, order[:index])
        later = next((each for each in order[index:] if each.kind == "step"), None)
        if scaled is not None and later is not None and (line := _unscaling(later)):
            late = any(each.kind == "unscale" for each in order[index:])
            yield Hit(
                event.node,
                "gradients are clipped while still scaled: nearly all of them are cut",
                notes=(Related.at(scaled.place, "scaled, and unscaled only by step()"),),
                help=f"`{line}` before the clip",
                fix=None if late else _fix(run, event, later, line),
                path=event.path,
            )


def _clipped_then_averaged(run: Run) -> Iterator[Hit]:
    """Clips of a model that no wrapper reduces, whose gradients are reduced before the step."""
    clip: Event | None = None
    wrapped = {part for each in wrappers(run) for part in parts(run, each)}
    for event, way in events(run.root, "clip", "step", "collective"):
        if event.kind == "step":
            clip = None
        elif event.kind == "clip":
            clip = event
        elif clip is not None and event.name in _REDUCING and doers(way).mask == EVERYONE:
            of = weights_in(clip.values.get("parameters", NONE))
            if of is None or of.number in wrapped or not _reduces_gradients(run, event, of):
                continue
            yield Hit(
                clip.node,
                "gradients are clipped before they are averaged: each rank cuts its own part",
                notes=(Related.at(event.place, "they are averaged here"),),
                help="average first, then clip",
                confidence="likely",
                path=clip.path,
            )
            clip = None


def _clipped_in_each_part(run: Run) -> Iterator[Hit]:
    """Clips within Accelerate's accumulation that do not ask whether this part is the last."""
    for event, way in events(run.root, "clip"):
        asked = [choice.condition.what for step in way for choice in _passed(step)]
        if "accumulate" not in event.scopes or any(map(_tells_the_last, asked)):
            continue
        if _accumulates(run, event.values.get("object", NONE)):
            yield Hit(
                event.node,
                "gradients are clipped in each part of a batch, before they are reduced",
                help="clip only `if accelerator.sync_gradients:`",
                confidence="likely",
                path=event.path,
            )


def _passed(step: Step) -> Iterator[Choice]:
    """The choices by which ranks have come here: around it, and those with a way out before it."""
    for node in (*step.seq.items[: step.index], step.node):
        is_way_out = isinstance(node, Choice) and any(leaves(arm.body) for arm in node.arms)
        if isinstance(node, Choice) and (node is step.node or is_way_out):
            yield node


def _accumulates(run: Run, accelerator: Value) -> bool:
    """Whether an accelerator was told that it may step after several parts of a batch."""
    steps, plan = (run.vm.store.get((accelerator.what, each)) for each in ("steps", "plan"))
    return plan is not None or (steps is not None and not steps.is_const(1))


def _tells_the_last(condition: What) -> bool:
    """Whether a condition asks if gradients are reduced, or counts the parts."""
    return any(
        isinstance(each, Term) and (each.op in ("Mod", "counter") or each == _IS_LAST)
        for each in within(condition)
    )


def _reduces_gradients(run: Run, event: Event, of: Ref) -> bool:
    given = event.values.get("shares", NONE)
    written = event.node.args[:1] if isinstance(event.node, ast.Call) else []
    if isinstance(given.what, Term) and given.what.op == "joined":  # they are written back to
        return any(isinstance(each, ast.Attribute) and each.attr == "grad" for each in written)
    return any(
        isinstance(each.what, Term)
        and each.what.op == "of"
        and each.what.args[1:2] == ("grad",)
        and weights_in(Value(each.what.args[0])) == of
        for each in (given, *origins(run, given))
    )


def _scaled(run: Run, before: list[Event]) -> Event | None:
    """The backward of a scaled loss whose gradients are still so."""
    for event in reversed(before):
        if event.kind in ("step", "unscale"):
            return None
        if event.kind == "backward" and _is_scaled(run, event.values.get("loss")):
            return event
    return None


def _is_scaled(run: Run, loss: Value | None) -> bool:
    made = run.vm.made.get(loss.what) if loss is not None else None
    return made is not None and made.by == "scale"


def _unscaling(step: Event) -> str:
    """`scaler.unscale_(optimizer)`, in the words of a scaler's step."""
    node = step.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return ""
    return f"{ast.unparse(node.func.value)}.unscale_({ast.unparse(node.args[0])})"


def _fix(run: Run, clip: Event, step: Event, line: str) -> Fix | None:
    source = run.source(clip.path)
    if source is None or clip.path != step.path or clip.function != step.function:
        return None
    for each in source.nodes:
        if isinstance(each, ast.Expr | ast.Assign) and each.value is clip.node:
            edit = insert_line_before(source, each, line)
            return Fix((edit,)) if edit else None
    return None
