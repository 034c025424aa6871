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
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import FALSE
from ddpdoctor.lint.engine.queries.forwards import forward_of, learns, surely_used
from ddpdoctor.lint.engine.queries.reading import reads
from ddpdoctor.lint.engine.queries.wrapping import attributes
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
        if _uses_everything(run, wrap):
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
    if any(True for _ in events(forward.seq, "checkpoint", "cut")):
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
