"""Frozen model in DDP.

## What it does
Finds a model that is wrapped in DDP after all of its parameters were frozen.

## Why is this bad?
DDP has nothing to reduce, and raises: "DistributedDataParallel is not needed when a module doesn't
have any parameters that require a gradient."

## Example
```python
teacher.requires_grad_(False)
teacher = DDP(teacher)
```

## Use instead
```python
teacher.requires_grad_(False)
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Step, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    Either,
    Ref,
    Term,
    Value,
    What,
    text,
)
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.wrapping import parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP301", name="unused-parameters", confidence="likely")

_PARAMETERS = ("parameters", "named_parameters")


def check(run: Run) -> Iterator[Hit]:
    """Yield wraps of models that were frozen as a whole."""
    changes = list(_changes(run))
    told: set[int] = set()
    for wrap, at in events(run.root, "wrap") if changes else ():
        module = wrap.values["module"]
        several = isinstance(module.what, Either) and not any(map(_is_choice, at))
        for each in (
            module.what.options if isinstance(module.what, Either) and several else (module,)
        ):
            frozen = _frozen(run, each.what, changes, at)
            if frozen is None or id(wrap.node) in told:
                continue
            told.add(id(wrap.node))
            yield Hit(
                wrap.node,
                "nothing in this model is trained: DDP has nothing to reduce, and refuses it",
                notes=(Related.at(frozen.place, "it is frozen"),),
                help="use it as it is: its weights stay as they are on every rank",
                path=wrap.path,
            )


def _is_choice(step: Step) -> bool:
    return isinstance(step.node, Choice)


def _frozen(run: Run, module: What, changes: list[tuple[Event, Way]], wrap: Way) -> Event | None:
    """Where a model that is wrapped was frozen as a whole, if it was so to the end."""
    made = _made(run, module) or wrap
    last: Event | None = None
    for event, way in changes:
        if not is_after(way, wrap):
            continue
        of, is_off = _of(event), _on(event).is_const(False)
        if of == module != NOTHING and not any(map(_is_choice, _beyond(way, made))):
            last = event if is_off and not _grows(run, module, way) else None
        elif not is_off and (not isinstance(of, Ref) or of.number in parts(run, module)):
            last = None
    return None if last is not None and _asks(wrap) else last


def _made(run: Run, module: What) -> Way | None:
    made = events(run.root, "make", "new")
    return next((way for event, way in made if event.values["object"].what == module), None)


def _beyond(way: Way, other: Way) -> Way:
    """The steps of a way that another does not share."""
    shared = 0
    for one, two in zip(way, other, strict=False):
        if one.seq is not two.seq or one.index != two.index:
            break
        shared += 1
    return way[shared:]


def _asks(wrap: Way) -> bool:
    """Whether somebody looks before wrapping whether anything is trained."""
    passed = [node for step in wrap for node in step.seq.items[: step.index + 1]]
    tests = (each.test for each in passed if isinstance(each, Choice))
    return any("requires_grad" in text(each, 10_000) for each in tests)


def _changes(run: Run) -> Iterator[tuple[Event, Way]]:
    """What says of parameters whether they are trained."""
    for event, way in events(run.root, "unfreeze", "set_attribute"):
        if event.kind == "unfreeze" or event.name == "requires_grad":
            yield event, way


def _on(event: Event) -> Value:
    """Whether they are from here on."""
    values = event.values
    said = values.get("value") or values.get("on") or values.get("arg0") or values.get("kw_mode")
    return said if said is not None else Value(NOTHING)


def _of(event: Event) -> What:
    """The module of which it is said, or of whose parameters one by one."""
    what = (event.values.get("owner") or event.values.get("object") or NONE).what
    while isinstance(what, Term) and what.op in ("element", "item"):
        what = what.args[0]
    if isinstance(what, Term) and what.op == "call" and what.args[0] in _PARAMETERS:
        what = what.args[1]
    return members.module_of(what) or what


def _grows(run: Run, module: What, frozen: Way) -> bool:
    """Whether something in it was made after it was frozen."""
    inside = parts(run, module)
    return any(
        isinstance(made := event.values["object"].what, Ref)
        and made.number in inside
        and is_after(frozen, way)
        for event, way in events(run.root, "new", "make")
    )
