"""Reduction of something that nobody has afterwards.

## What it does
Finds an in-place collective on a copy of this rank's own values that is made for the call and has
no name, where those values are used afterwards: `dist.all_reduce(total.double())`,
`dist.all_reduce(hits / count)`.

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

from ddpdoctor.lint.engine.interpreter.machine import Made
from ddpdoctor.lint.engine.interpreter.objects.containers import content, held
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, events
from ddpdoctor.lint.engine.interpreter.values import Const, Table, Value, has_identity, within
from ddpdoctor.lint.rule import About, Hit

ABOUT = About(code="DDP214", name="metric-not-reduced", confidence="likely")

_IN_PLACE = ("all_reduce", "broadcast", "reduce")
_CALLS = """
    as_tensor bool clone double from_numpy half int long stack tensor Add Div FloorDiv Mult Sub
"""
_COPIES = frozenset(_CALLS.split())
"""What gives a tensor of its own that stands for the one that it is computed from."""


def check(run: Run) -> Iterator[Hit]:
    """Yield in-place collectives whose result is thrown away."""
    told: set[int] = set()
    for event, _ in events(run.root, "collective"):
        given = _given(event)
        made = run.vm.made.get(event.values["shares"].what) if given is not None else None
        if given is None or made is None or made.node is not given or made.by not in _COPIES:
            continue
        parts = [each for each in _parts(run, made) if each.agree.divergent]
        own = next((each for each in parts if _is_read_later(run, each, made, event)), None)
        if own is not None and id(event.node) not in told:
            told.add(id(event.node))
            yield Hit(
                given,
                f"{event.name}() writes into a copy that nobody has afterwards",
                why=own.why,
                help="give the copy a name, reduce it, and use it afterwards",
                path=event.path,
            )


def _given(event: Event) -> ast.Call | ast.BinOp | None:
    """What is made for a call that reduces in place, where it is made there."""
    call = event.node
    if event.name not in _IN_PLACE or "shares" not in event.values:
        return None
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return first if isinstance(first, ast.Call | ast.BinOp) else None


def _parts(run: Run, made: Made) -> Iterator[Value]:
    """What it was computed from, as it was: by what is alike ranks only wait for each other."""
    for each in made.of:
        yield each
        yield from held(content(run.vm, each) or each)


def _is_read_later(run: Run, value: Value, made: Made, event: Event) -> bool:
    """Whether anything is done afterwards with what the copy was made of."""
    what = value.what
    if not has_identity(what) or isinstance(what, Const | Table):
        return False
    later = (each for each in run.vm.made.values() if each.order > made.order)
    if any(what in [given.what for given in each.of] for each in later):
        return True
    following = False
    for each, _ in events(run.root):
        if following and any(what in within(given.what) for given in each.values.values()):
            return True
        following = following or each is event
    return False
