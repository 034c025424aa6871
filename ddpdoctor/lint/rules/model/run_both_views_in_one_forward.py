"""Forwards of one wrapper of which each uses other parts, before one backward.

## What it does
Finds forwards of a wrapper that searches for unused parameters, the last of which leaves out a part
that an earlier one uses, before one backward goes through both.

## Why is this bad?
What the last forward does not use is marked as ready there, and once more where its gradient comes:
"Expected to mark a variable ready only once".

## Example
```python
one = model(image, "left")
other = model(image, "right")
(one - other).square().mean().backward()
```

## Use instead
```python
one, other = model(image)
(one - other).square().mean().backward()
```
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Event, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import NONE, Ref, Value, What
from ddpdoctor.lint.engine.queries.forwards import (
    forward_of,
    surely_used,
    used,
)
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.engine.queries.sharding import loops
from ddpdoctor.lint.engine.queries.wrapping import computed_from, has_graph, is_frozen
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP311", name="marked-ready-twice", confidence="likely")

_Done = tuple[Event, Way]


def check(run: Run) -> Iterator[Hit]:
    """Yield forwards that leave out what one backward comes to all the same."""
    if not run.is_entry:
        return
    told: set[int] = set()
    for wrap, _ in events(run.root, "wrap"):
        promised = wrap.values.get("kw_static_graph", NONE)
        if not promised.is_const(False, None):
            continue
        for hit in _left_out(run, wrap):
            if id(hit.node) not in told:
                told.add(id(hit.node))
                yield hit


def _left_out(run: Run, wrap: Event) -> Iterator[Hit]:
    """The last of several forwards that one backward goes through, if it leaves a part out."""
    if not wrap.values.get("kw_find_unused_parameters", NONE).is_const(True):
        return
    known = forward_of(run, wrap.values["module"])
    if known is None or known.unknown:
        return
    learning = _steps(run, wrap.values["wrapper"].what)
    for number, (step, _) in enumerate(learning):
        if step.kind != "backward":
            continue
        forwards: list[_Done] = []
        for done in reversed(learning[:number]):
            if done[0].kind == "backward":
                break
            forwards.append(done)
        if len(forwards) < 2:
            continue
        (last, to), *earlier = forwards
        if not _goes_through(run, step, last, learning):
            continue
        for each, way in earlier:
            if loops(way) != loops(to) or not is_after(way, to):
                continue
            mine, its = _inside(way), _inside(to)
            if mine is None or its is None or not _goes_through(run, step, each, learning):
                continue
            if any(not is_frozen(run, Ref(one)) for one in surely_used(run, mine) - used(run, its)):
                yield Hit(
                    last.node,
                    "this forward leaves a part out that an earlier one uses, before one backward "
                    "goes through both: DDP marks its parameters ready twice",
                    notes=(
                        Related.at(each.place, "the earlier forward uses it"),
                        Related.at(step.place, "one backward goes through both"),
                    ),
                    help="run both in one forward of the wrapper",
                    path=last.path,
                )
                return


def _steps(run: Run, wrapper: What) -> list[_Done]:
    """The forwards of a wrapper that learn, and all backwards, as the program does them."""
    return [
        (event, way)
        for event, way in events(run.root, "forward", "backward")
        if not {"no_grad", "no_sync"} & {*event.scopes}
        if event.kind == "backward" or event.values["model"].what == wrapper
    ]


def _inside(way: Way) -> Seq | None:
    """What a forward does, where it is seen."""
    body = way[-1].rest[0] if way[-1].rest else None
    return Seq([body]) if isinstance(body, Called) else None


def _goes_through(run: Run, backward: Event, forward: Event, learning: list[_Done]) -> bool:
    """Whether a loss is computed from what one forward gives, in ways that a gradient goes."""
    loss, model = backward.values["loss"], forward.values["model"].what
    if not isinstance(model, Ref) or not has_graph(run, loss, {model.number}):
        return False
    alike = [each for each, _ in learning if each.kind == "forward" and each.node is forward.node]
    return len(alike) == 1 and any(
        step.by == "forward" and step.node is forward.node and Value(model) in _models(step.of)
        for _, step in computed_from(run, loss)
    )


def _models(of: tuple[Value, ...]) -> list[Value]:
    return [Value(each.what) for each in of if isinstance(each.what, Ref)]
