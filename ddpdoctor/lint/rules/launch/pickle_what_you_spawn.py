"""Arguments for spawned ranks that cannot be pickled.

## What it does
Finds lambdas, open files, locks and functions defined in functions among the arguments of
`mp.spawn`, also inside an object that is built in the same function.

## Why is this bad?
Spawned processes get their arguments by pickle: "Can't pickle <function <lambda>>" before any rank
runs.

## Example
```python
mp.spawn(worker, args=(lambda step: 0.5**step,), nprocs=4)
```

## Use instead
```python
def halve(step):
    return 0.5**step

mp.spawn(worker, args=(halve,), nprocs=4)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from ddpdoctor.lint.engine.interpreter.objects import containers, hierarchy, keyed
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import events
from ddpdoctor.lint.engine.interpreter.values import (
    Either,
    Func,
    Place,
    Ref,
    Tuple,
    Value,
    What,
    Why,
)
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP117", name="unpicklable-spawn-arguments", confidence="certain")

_UNPICKLABLE = ("file", "threading.Lock", "threading.RLock", "socket.socket")
_DEPTH = 8
_SAYS_ITSELF = ("__getstate__", "__reduce__", "__reduce_ex__", "__getnewargs__")
"""What a class has that decides what is pickled of its objects."""


def check(run: Run) -> Iterator[Hit]:
    """Yield spawns that end in a PicklingError."""
    for event, _ in events(run.root, "spawn"):
        method = event.values.get("method")
        if method is not None and method.is_const("fork"):
            continue
        given = [event.values.get(role) for role in ("target", "arguments")]
        all_found = (
            (why, perhaps)
            for perhaps in (False, True)
            for each in given
            if each and (why := _unpicklable(run, each, _DEPTH, set(), perhaps=perhaps))
        )
        found, perhaps = next(all_found, (None, False))
        if found is not None:
            yield Hit(
                event.node,
                f"{found.text} cannot be pickled for the spawned ranks",
                notes=(Related.at(found.place, "it is made here"),),
                help="hand over functions and classes of the module's top level",
                confidence="likely" if perhaps else None,
                path=event.path,
            )


def _unpicklable(
    run: Run, value: Value, depth: int, seen: set[What], *, perhaps: bool
) -> Why | None:
    """What of a value cannot be, or where `perhaps`, what of the things that it may be."""
    what = value.what
    if isinstance(what, Func):
        return _of_function(run, what)
    made = run.vm.object(value)
    if made is not None and made.type in _UNPICKLABLE:
        line = getattr(made.node, "lineno", 1)
        return Why(f"what `{ast.unparse(made.node)}` returns", Place(made.path, line))
    if what in seen:
        return None
    seen.add(what)
    inside = _inside(run, value) if depth else []
    if perhaps and isinstance(what, Either):
        inside = list(what.options)
    for each in inside:
        if (why := _unpicklable(run, each, depth - 1, seen, perhaps=perhaps)) is not None:
            return why
    return None


def _of_function(run: Run, what: Func) -> Why | None:
    """A lambda, or a function in a function that nothing at the top stands for."""
    info = run.vm.functions[what.number]
    place = Place(info.module.path, info.node.lineno)
    if isinstance(info.node, ast.Lambda):
        return Why(f"the lambda at line {info.node.lineno}", place)
    free = replace(what, bound=())  # a method that stands for one of a class is found by its name
    at_top = len(what.scopes) < 2 or run.vm.store.get((free, "__wrapped__")) is not None
    said = f"the function `{info.name}`, which is defined in a function,"
    return None if at_top else Why(said, place)


def _inside(run: Run, value: Value) -> list[Value]:
    """What a container holds, what an object keeps, what an unknown class was given."""
    if run.vm.type_of(value) == "dict":
        return [each for _, each in keyed.entries(run.vm, value)]
    content = containers.content(run.vm, value)
    if content is not None:
        return list(containers.held(content))
    given = run.vm.store.get((value.what, "#given"))
    if given is not None and isinstance(given.what, Tuple):
        return list(given.what.items)
    made = run.vm.object(value)
    if not isinstance(value.what, Ref) or made is None:
        return []
    if made.cls >= 0 and any(
        hierarchy.class_attribute(run.vm, made.cls, each) is not None for each in _SAYS_ITSELF
    ):
        return []
    if made.type == keyed.NAMESPACE:
        return list(keyed.options(run.vm, value).values())
    return list(run.vm.store.of(value.what).values())
