"""Reentrant checkpointing of a module that is used more than once.

## What it does
Finds `checkpoint(self.block, x, use_reentrant=True)` in a loop that does not run over the blocks,
or twice of one block in a pass, as where two views are encoded; or in a model that DDP searches for
unused parameters, where it has no static graph.

## Why is this bad?
Each reentrant checkpoint runs a backward of its own and marks its parameters ready: "Expected to
mark a variable ready only once". A search for unused parameters does the same: it sees none of
what is checkpointed.

## Example
```python
for _ in range(2):
    x = checkpoint(self.shared, x, use_reentrant=True)
```

## Use instead
```python
for _ in range(2):
    x = checkpoint(self.shared, x, use_reentrant=False)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.edits import replace
from ddpdoctor.lint.engine.interpreter.machine import BOUND
from ddpdoctor.lint.engine.interpreter.objects.members import default
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Way, events
from ddpdoctor.lint.engine.interpreter.values import NOTHING, Func, Value, What
from ddpdoctor.lint.engine.queries.forwards import forward_of
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.wrapping import mentioned
from ddpdoctor.lint.rule import About, Fix, Hit, Related

ABOUT = About(code="DDP311", name="marked-ready-twice", confidence="certain")


def check(run: Run) -> Iterator[Hit]:
    """Yield shared modules whose parameters become ready twice."""
    static = {event.values["object"].what for event, _ in events(run.root, "static_graph")}
    for wrap, _ in events(run.root, "wrap"):
        promised = wrap.values.get("kw_static_graph")
        if (promised and not promised.is_const(False)) or wrap.values["wrapper"].what in static:
            continue
        search = wrap.values.get("kw_find_unused_parameters")
        searches = search is not None and search.is_const(True)
        by_default = search is not None and not searches and _is_on_by_default(run, search)
        forward = forward_of(run, wrap.values["module"])
        found = list(events(forward.seq, "checkpoint")) if forward else []
        for event, way in found:
            again = event.values.get("kw_use_reentrant")
            if again is None or not again.is_const(True):
                continue
            if (
                not searches
                and not by_default
                and not (_is_shared(run, event, way) or _is_done_twice(event, way, found))
            ):
                continue
            name = ast.unparse(event.node.args[0]) if isinstance(event.node, ast.Call) else ""
            yield Hit(
                event.node,
                _said(name, searches=searches or by_default),
                notes=(*_asked(again), *_handed_on(run, event)),
                help="use_reentrant=False",
                fix=_fix(run, event),
                confidence="likely" if by_default else None,
                path=event.path,
            )


def _is_on_by_default(run: Run, value: Value) -> bool:
    """Whether it is an option that is true unless somebody says otherwise."""
    said = default(run.vm, value)
    return said is not None and said.is_const(True)


def _said(name: str, *, searches: bool) -> str:
    if searches:
        return f"find_unused_parameters=True marks the parameters of `{name}` ready twice"
    return f"`{name}` is checkpointed once per pass: DDP marks its parameters ready twice"


def _is_shared(run: Run, event: Event, way: Way) -> bool:
    """Whether each round of a loop checkpoints the same module."""
    function = event.values.get("function")
    if function is None or function.what == NOTHING or isinstance(function.what, Func):
        return False
    around = [step for step in way if isinstance(step.node, Loop)]
    another: set[What] = set()
    for step in around:
        if step.begun is not None:
            another |= mentioned(run, step.begun.values["element"]) | _counted(step.begun)
    return bool(around) and not mentioned(run, function) & another


def _is_done_twice(event: Event, way: Way, found: list[tuple[Event, Way]]) -> bool:
    """Whether one pass checkpoints the same module once more, not instead."""
    function = event.values.get("function")
    if function is None or function.what == NOTHING or isinstance(function.what, Func):
        return False
    return any(
        each is not event
        and each.values.get("function") == function
        and _written(each) == _written(event)
        and _may_both_be_done(way, other)
        for each, other in found
    )


def _written(event: Event) -> str:
    """What is checkpointed, as it is written: of a list's elements one is not told from another."""
    node = event.node
    return ast.unparse(node.args[0]) if isinstance(node, ast.Call) and node.args else ""


def _may_both_be_done(one: Way, other: Way) -> bool:
    """Whether two ways do not part at a condition, and neither leaves before the other comes."""
    for number, (mine, its) in enumerate(zip(one, other, strict=False)):
        if mine.seq is not its.seq:
            return number == 0 or not isinstance(one[number - 1].node, Choice)
        if mine.index != its.index:
            first = (one if mine.index < its.index else other)[number : number + 2]
            return not (isinstance(first[0].node, Choice) and leaves(first[-1].seq))
    return True


def _counted(iterate: Event) -> set[What]:
    element: Value = iterate.values["element"]
    return {element.what}


def _fix(run: Run, event: Event) -> Fix | None:
    source = run.source(event.path)
    if source is None or not isinstance(event.node, ast.Call):
        return None
    for each in event.node.keywords:
        if each.arg == "use_reentrant" and isinstance(each.value, ast.Constant):
            return Fix((replace(source, each.value, "False"),))
    return None


def _handed_on(run: Run, event: Event) -> Iterator[Related]:
    """Where reentry is asked for, if the call passes on what it was given."""
    call = event.node
    if not isinstance(call, ast.Call) or all(each.arg is not None for each in call.keywords):
        return
    for path in sorted(run.vm.files):
        source = run.source(path)
        for node in ast.walk(source.tree) if source is not None else ():
            for each in node.keywords if isinstance(node, ast.Call) else ():
                if each.arg == "use_reentrant" and getattr(each.value, "value", None) is True:
                    yield Related(path, each.value.lineno, "reentry is asked for here")


def _asked(again: Value) -> tuple[Related, ...]:
    """Where reentry is asked for, if it is before the call, as by a partial."""
    if again.why is None or again.why.text != BOUND:
        return ()
    return (Related.at(again.why.place, "reentry is asked for here"),)
