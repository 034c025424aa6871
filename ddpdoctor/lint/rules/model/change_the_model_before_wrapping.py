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

from ddpdoctor.lint.engine.interpreter.objects import hierarchy, members
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import Ref, Tensor, Value, What
from ddpdoctor.lint.engine.queries.doing import function_of
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.sharding import numbers
from ddpdoctor.lint.engine.queries.wrapping import mentioned, parts
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP305", name="late-parameter", confidence="certain")

_CHANGES = ("set_attribute", "set_item", "register", "unfreeze")
_NAMED = ("add_module", "register_module", "register_parameter")


def check(run: Run) -> Iterator[Hit]:
    """Yield changes that come too late for the buckets."""
    wraps = [each for each in events(run.root, "wrap") if _has_identity(each[0])]
    if not wraps:
        return
    changes = [(event, way, _change(run, event)) for event, way in events(run.root, *_CHANGES)]
    froze = [
        (event.values.get("owner") or event.values["object"], way)
        for event, way in events(run.root, "unfreeze", "set_attribute")
        if _freezes(event)
    ]
    made = {event.values["object"].what: way for event, way in events(run.root, "make", "new")}
    told: set[int] = set()
    for wrap, at in wraps:
        module = wrap.values["module"].what
        inside = parts(run, module)
        for event, way, change in changes:
            if not change or id(event.node) in told or not is_after(at, way):
                continue
            changed = event.values.get("owner") or event.values["object"]
            if changed.what in made and is_after(at, made[changed.what]):
                continue  # it is built only now
            if not _is_unfreezing(event) and _is_of_one_round(run, way):
                continue  # no optimizer is ever given it
            if not _is_below(run, changed, module, inside):
                continue
            if _is_wrapped_again(wraps, (wrap, at), way):
                continue
            if "value" in event.values and _is_only_asked(run, event.values["value"]):
                continue
            theirs = _reach(run, changed)
            below = [(each, w) for each, w in froze if _is_below(run, each, module, inside)]
            frozen = [w for each, w in below if not theirs.isdisjoint(_reach(run, each))]
            if _is_unfreezing(event) and below and all(is_after(at, w) for w in frozen):
                continue  # what froze it has come after the wrap, which knows it
            told.add(id(event.node))
            node, path = _asked_by(run, event, way, inside) or (event.node, event.path)
            yield Hit(
                node,
                f"{change} after the model was wrapped in DDP: it is never reduced",
                notes=(Related.at(wrap.place, "it is wrapped"),),
                help="change the model first, then wrap it (or wrap it again)",
                path=path,
            )


def _is_of_one_round(run: Run, way: Way) -> bool:
    """Whether it stands in what a model does each time that it is called."""
    through = {id(event.node) for event, _ in events(run.root, "forward")}
    return any(isinstance(step.node, Called) and id(step.node.node) in through for step in way)


def _is_only_asked(run: Run, added: Value) -> bool:
    """Whether a part is run, and neither the wrapper runs it nor is anything trained by it."""
    if not isinstance(added.what, Ref):
        return False
    those = {added.what.number, *parts(run, added.what)}
    trained = (event.values["loss"].what for event, _ in events(run.root, "backward"))
    if any(isinstance(each, Tensor) and those & each.of for each in trained):
        return False
    through = {id(event.node) for event, _ in events(run.root, "forward")}
    runs = [
        any(isinstance(step.node, Called) and id(step.node.node) in through for step in way)
        for event, way in events(run.root, "forward", "bare_forward")
        if those & numbers(event.values["model"])
    ]
    return bool(runs) and not any(runs)


def _asked_by(run: Run, event: Event, way: Way, inside: set[int]) -> tuple[ast.AST, str] | None:
    """The call by which a model changes itself: its method may well be called before the wrap."""
    classes = {run.vm.objects[each].cls for each in inside} - {-1}
    owners = {base for each in classes for base in hierarchy.bases(run.vm, each)}
    inner: Event | Called = event
    for step in reversed(way):
        if isinstance(step.node, Called):
            method = run.vm.visited.get(id(function_of(run, inner)))
            if method is not None and method.owner in owners:
                return step.node.node, step.node.path
            inner = step.node
    return None


def _has_identity(wrap: Event) -> bool:
    return bool(wrap.values["module"].what != wrap.values["wrapper"].what)


def _change(run: Run, event: Event) -> str:
    """What is changed, in words; "" where no parameter is."""
    values = event.values
    said = f"`{ast.unparse(event.node)}`" if isinstance(event.node, ast.expr) else "a part"
    match event.kind:
        case "set_attribute" if event.name == "requires_grad":
            return "parameters are unfrozen" if values["value"].is_const(True) else ""
        case "set_attribute" | "set_item":
            return f"{said} is replaced" if members.is_module(run.vm, values["value"]) else ""
        case "register":
            given = [each for word, each in values.items() if word.startswith("arg")]
            added = event.name in _NAMED or any(members.is_module(run.vm, each) for each in given)
            return "a module or parameter is added" if added else ""
        case "unfreeze":
            asked = values.get("on") or values.get("arg0")
            return f"{said} unfreezes it" if asked is None or asked.is_const(True) else ""
    return ""


def _freezes(event: Event) -> bool:
    if event.kind == "unfreeze":
        asked = event.values.get("on") or event.values.get("arg0")
        return asked is not None and asked.is_const(False)
    return event.name == "requires_grad" and event.values["value"].is_const(False)


def _is_unfreezing(event: Event) -> bool:
    return event.kind == "unfreeze" or event.name == "requires_grad"


def _reach(run: Run, value: Value) -> set[int]:
    """The modules that it is taken from, with their parts."""
    found = {each for each in mentioned(run, value) if isinstance(each, Ref)}
    return {each.number for each in found}.union(*(parts(run, each) for each in found))


def _is_below(run: Run, changed: Value, module: What, inside: set[int]) -> bool:
    """Whether it is the module, a part of it, or something that is taken from one."""
    for each in mentioned(run, changed):
        if each == module or (isinstance(each, Ref) and each.number in inside):
            return True
    return False


def _is_wrapped_again(wraps: list[tuple[Event, Way]], first: tuple[Event, Way], way: Way) -> bool:
    """Whether what is wrapped is wrapped once more, wherever it was wrapped and then changed."""
    module, asked = first[0].values["module"].what, _asked(first[1]) | _asked(way)
    return any(
        each.values["module"].what == module and is_after(way, at) and _asked(at) <= asked
        for each, at in wraps
    )


def _asked(way: Way) -> set[What]:
    """What decides whether one comes there."""
    return {step.node.condition.what for step in way if isinstance(step.node, Choice)}
