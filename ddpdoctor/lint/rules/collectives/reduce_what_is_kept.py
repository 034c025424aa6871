"""Reduction of something that nobody has afterwards.

## What it does
Finds an in-place collective on a copy of this rank's own values that is made for the call and has
no name, where those values are used afterwards: `dist.all_reduce(total.double())`,
`dist.all_reduce(hits / count)`. And `dist.broadcast_object_list([setting])`: what rank 0 has sent
is in that list alone.

## Why is this bad?
The collective writes its result into the copy, which is gone when the call returns. What is used
afterwards is this rank's own value, and nothing raises.

## Example
```python
dist.all_reduce(counts.double())
print(counts / total)
```

## Use instead
```python
counts = counts.double()
dist.all_reduce(counts)
print(counts / total)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.objects import keyed
from ddpdoctor.lint.engine.interpreter.objects.containers import content, held
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    RANK,
    Const,
    Ref,
    Table,
    Value,
    has_identity,
    term,
    within,
)
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.holding import facts
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP214", name="metric-not-reduced", confidence="likely")

_IN_PLACE = ("all_reduce", "broadcast", "reduce")
_OF_OBJECTS = "broadcast_object_list"
_CALLS = """
    as_tensor bool clone double from_numpy half int long stack tensor Add Div FloorDiv Mult Sub
"""
_COPIES = frozenset(_CALLS.split())
"""What gives a tensor of its own that stands for the one that it is computed from."""


def check(run: Run) -> Iterator[Hit]:
    """Yield in-place collectives whose result is thrown away."""
    told: set[int] = set()
    for event, way in events(run.root, "collective"):
        given = _given(event)
        if given is None or id(event.node) in told or _is_used(run, event):
            continue
        if _is_the_source(event, way):
            continue
        parts, order = _parts(run, event, given)
        own = next(
            (
                each
                for each in parts
                if _is_own(run, each)
                and (_is_read_later(run, each, order, event) or _is_named_later(run, event, given))
            ),
            None,
        )
        if own is not None:
            told.add(id(event.node))
            kind = "list" if isinstance(given, ast.List) else "copy"
            yield Hit(
                given,
                f"{event.name}() writes into a {kind} that nobody has afterwards",
                why=own.why,
                help=f"give the {kind} a name, and use what is in it afterwards",
                path=event.path,
            )


def _is_used(run: Run, event: Event) -> bool:
    """Whether something is done with what the call gives back, as accelerate's does the list."""
    source = run.source(event.path)
    return source is None or not any(
        isinstance(each, ast.Expr) and each.value is event.node for each in source.nodes
    )


def _is_the_source(event: Event, way: Way) -> bool:
    """Whether the root of a broadcast alone comes to it, which has what it sends afterwards too."""
    if not event.name.startswith("broadcast"):
        return False
    root = event.values.get("root", NONE)
    number = 0 if root.is_const(None) else root.constant
    if isinstance(number, int):
        return doers(way).mask == 1 << number
    own = term("Eq", RANK, root.what), term("Eq", root.what, RANK)
    return any((each, True) in facts(way) for each in own)


def _given(event: Event) -> ast.Call | ast.BinOp | ast.List | None:
    """What is made for a call that writes into it, where it is made there."""
    call = event.node
    if event.name not in (*_IN_PLACE, _OF_OBJECTS) or "shares" not in event.values:
        return None
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    of = (ast.List,) if event.name == _OF_OBJECTS else (ast.Call, ast.BinOp)
    return first if isinstance(first, of) else None


def _parts(
    run: Run, event: Event, given: ast.Call | ast.BinOp | ast.List
) -> tuple[list[Value], int]:
    """What it was made of, as it was, and when: by what is alike ranks only wait for each other."""
    if isinstance(given, ast.List):
        sent = event.values.get("sent")
        return list(held(sent)) if sent is not None else [], event.order
    made = run.vm.made.get(event.values["shares"].what)
    if made is None or made.node is not given or made.by not in _COPIES:
        return [], 0
    return [
        part for each in made.of for part in (each, *held(content(run.vm, each) or each))
    ], made.order


def _is_named_later(run: Run, event: Event, given: ast.AST) -> bool:
    """Whether what stands in a list is named again behind the call, in the same function."""
    source = run.source(event.path)
    inside = source.function(event.node) if source is not None else None
    if not isinstance(given, ast.List) or inside is None:
        return False
    sent = {each.id for each in ast.walk(given) if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Name) and each.id in sent and each.lineno > event.place.line
        for each in ast.walk(inside)
    )


def _is_own(run: Run, value: Value) -> bool:
    """Whether ranks have another value each, or something else in it."""
    entries = keyed.entries(run.vm, value) if isinstance(value.what, Ref) else ()
    return value.agree.divergent or any(each.agree.divergent for _, each in entries)


def _is_read_later(run: Run, value: Value, order: int, event: Event) -> bool:
    """Whether anything is done afterwards with what the copy was made of."""
    what = value.what
    if not has_identity(what) or isinstance(what, Const | Table):
        return False
    later = (each for each in run.vm.made.values() if each.order > order)
    if any(what in [given.what for given in each.of] for each in later):
        return True
    following = False
    for each, _ in events(run.root):
        if following and any(what in within(given.what) for given in each.values.values()):
            return True
        following = following or each is event
    return False
