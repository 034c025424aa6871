"""A search for unused parameters where there are none.

## What it does
Finds `find_unused_parameters=True` for models of the same file that have one way through their
forward and use every part they register.

## Why is this bad?
The whole graph is walked after every forward, for nothing; and it hides parameters that fall out of
use later, by mistake.

## Example
```python
model = DDP(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), find_unused_parameters=True)
```

## Use instead
```python
model = DDP(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Exit, Seq, events, walk
from ddpdoctor.lint.engine.interpreter.values import FALSE
from ddpdoctor.lint.engine.queries.forwards import forward_of, learns, surely_used
from ddpdoctor.lint.engine.queries.outputs import arms_with_all, computed_from_parts, dropped
from ddpdoctor.lint.engine.queries.reading import reads
from ddpdoctor.lint.engine.queries.wrapping import attributes, parts
from ddpdoctor.lint.rule import About, Fix, Hit

ABOUT = About(code="DDP302", name="needless-find-unused", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield searches that can find nothing."""
    for wrap, _ in events(run.root, "wrap"):
        wanted = wrap.values.get("kw_find_unused_parameters")
        if wanted is None or not wanted.is_const(True) or _is_frozen(run):
            continue
        if wrap.values.get("kw_static_graph", FALSE).is_const(True):
            continue  # it is walked in the first step alone
        if _uses_everything(run, wrap) and not _is_left_out(run, wrap):
            yield Hit(
                wrap.node,
                "find_unused_parameters=True walks the graph of every step, and finds nothing",
                help="leave it off: every part of this model is always used",
                fix=_fix(run, wrap),
                path=wrap.path,
            )


def _is_frozen(run: Run) -> bool:
    """Whether parameters are frozen or unfrozen anywhere: then the search may find some."""
    return any(True for _ in events(run.root, "unfreeze")) or any(
        event.name == "requires_grad" for event, _ in events(run.root, "set_attribute")
    )


def _uses_everything(run: Run, wrap: Event) -> bool:
    module = wrap.values["module"]
    forward = forward_of(run, module)
    if forward is None or forward.unknown:
        return False
    # A list of what layers gave may be cut before the loss is made of it.
    if any(True for _ in events(forward.seq, "checkpoint", "cut")) or _may_end_early(forward.seq):
        return False
    layers = learns(run, module.what)
    plain = {number for number in layers if _is_parameter(run, number)}
    held = attributes(run)
    asked = all(
        reads(run, name)
        for kept in held.values()
        for name, value in kept.items()
        if getattr(value.what, "number", 0) in plain
    )
    return bool(layers) and asked and layers - plain <= surely_used(run, forward.seq)


def _may_end_early(seq: Seq) -> bool:
    """Whether a part of a forward may return before it has used what it has."""
    for node, way in walk(seq):
        if isinstance(node, Choice) and way[-1].index + 1 < len(way[-1].seq.items):
            ends = [_returns(arm.body) for arm in node.arms]
            if any(ends) and not all(ends):
                return True
    return False


def _returns(body: Seq) -> bool:
    last = body.items[-1] if body.items else None
    return isinstance(last, Exit) and last.kind == "return"


def _is_left_out(run: Run, wrap: Event) -> bool:
    """Whether something is computed from an output under a condition alone, or nowhere."""
    inside = parts(run, wrap.values["module"].what)
    if any(True for _ in dropped(run, inside)):
        return True
    for call, nodes in computed_from_parts(run, inside):
        if any(id(call.node) not in arm for _, _, arm in arms_with_all(run, nodes)):
            return True
    return False


def _is_parameter(run: Run, number: int) -> bool:
    return run.vm.objects[number].type == "torch.nn.Parameter"


def _fix(run: Run, wrap: Event) -> Fix | None:
    source = run.source(wrap.path)
    if source is None or not isinstance(wrap.node, ast.Call):
        return None
    for each in wrap.node.keywords:
        if each.arg == "find_unused_parameters":
            return Fix((replace(source, each.value, "False"),))
    return None
