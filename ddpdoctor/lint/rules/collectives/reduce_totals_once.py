"""Running total reduced in every round.

## What it does
Finds a loop that adds to a total and sums that total over the ranks, in place, in every round; and
a tensor that is summed over the ranks, summed again as it is, and then divided.

## Why is this bad?
After the first round the total is that of all ranks, on each of them. The next round sums it again:
with four ranks early batches count four, sixteen, sixty-four times. Nothing raises.

## Example
```python
for batch in loader:
    total += loss(batch)
    dist.all_reduce(total)
```

## Use instead
```python
for batch in loader:
    total += loss(batch)
dist.all_reduce(total)
```
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.machine import EITHER
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Seq, Way, events
from ddpdoctor.lint.engine.interpreter.values import Tensor, Term, Value, within
from ddpdoctor.lint.engine.libraries.torch import VIEWS
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.reducing import sums
from ddpdoctor.lint.engine.queries.wrapping import computed_from
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP421", name="reduced-twice", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the reductions of totals that go on to grow."""
    told: set[int] = set()
    for event, way in events(run.root, "collective"):
        total, loop = event.values.get("shares"), _loop(way)
        if event.name != "all_reduce" or not sums(event) or id(event.node) in told:
            continue
        if loop is None or total is None or not isinstance(total.what, Tensor):
            continue
        changes = list(_changes(run, loop.body, total.what.site))
        grown = _grown_by_element(loop.body)
        if (
            not changes
            or not all(_adds(each) or each.node in grown for each in changes)
            or _is_one_of_many(run, total.what.site)
        ):
            continue
        if not _is_made_in(run, total, loop):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the running total is summed in every round, with what was summed before",
                notes=(Related.at(changes[0].place, "it grows"),),
                help="reduce it once, behind the loop, or reduce what is added",
                path=event.path,
            )
    yield from _at_once(run)


def _at_once(run: Run) -> Iterator[Hit]:
    """What is summed a second time before anything has become of the first, for a mean."""
    summed: dict[int, dict[int, Event]] = {}
    told: set[int] = set()
    for event, way in events(run.root, "collective", "change", "set_attribute"):
        if event.kind != "collective":
            owner = event.values.get("object" if event.kind == "change" else "owner")
            for site in _seen_through(run, owner) if owner is not None else ():
                summed.pop(site, None)
            continue
        total = event.values.get("shares")
        if event.name != "all_reduce" or total is None or not isinstance(total.what, Tensor):
            continue
        by_part = summed.setdefault(total.what.site, {}) if sums(event) else {}
        before = by_part.setdefault(id(way[-1].seq), event)
        again = before.node is not event.node and total.agree.kind == "same"
        if again and id(event.node) not in told and _is_divided(run, total.what, event.order):
            told.add(id(event.node))
            yield Hit(
                event.node,
                "this has been summed over the ranks already: each of them adds the whole sum",
                notes=(Related.at(before.place, "it is summed here"),),
                help="reduce each value once",
                path=event.path,
            )


def _is_divided(run: Run, total: Tensor, since: int) -> bool:
    """Whether a mean is made of a tensor afterwards."""
    by_hand = any(
        made.by in ("Div", "div") and made.order > since and made.of and made.of[0].what == total
        for made in run.vm.made.values()
    )
    return by_hand or any(
        event.order >= since and event.values["object"].what == total and _divides(event.node)
        for event, _ in events(run.root, "change")
    )


def _divides(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("div_", "divide_", "true_divide_")
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div)


def _loop(way: Way) -> Loop | None:
    """The innermost loop, of which every round does it, if there is a second."""
    for step in reversed(way):
        if isinstance(step.node, Choice) and not _comes_again(step.node):
            return None
        if isinstance(step.node, Loop):
            left = leaves(step.node.body)
            return step.node if left is None or left.kind == "continue" else None
    return None


def _comes_again(choice: Choice) -> bool:
    """Whether a condition is true in every so many rounds: `step % 10 == 0`."""
    parts = within(choice.condition.what)
    return choice.condition.agree.kind == "same" and any(
        isinstance(each, Term) and each.op == "Mod" for each in parts
    )


def _grown_by_element(seq: Seq) -> set[ast.AST]:
    """The elements of tensors that are added to: `totals[i] += x`."""
    adding = (event.node for event, _ in events(seq, "add_up"))
    return {
        each.target
        for each in adding
        if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add)
    }


def _changes(run: Run, seq: Seq, site: int) -> Iterator[Event]:
    """What is written into a tensor, wherever it was computed since, or into a view of it."""
    for event, _ in events(seq, "change", "set_attribute"):
        if event.kind == "change" or event.name == "data":
            owner = event.values["object" if event.kind == "change" else "owner"]
            if site in _seen_through(run, owner):
                yield event


def _seen_through(run: Run, view: Value) -> Iterator[int]:
    """The site of a tensor, and of those that it is a view of."""
    what: object = view.what
    seen: set[object] = set()
    while isinstance(what, Tensor) and what not in seen:  # of a round, one of the round before's
        seen.add(what)
        yield what.site
        made = run.vm.made.get(what)
        what = made.of[0].what if made is not None and made.by in VIEWS else None


def _adds(event: Event) -> bool:
    """Whether one thing grows, and not an element of several."""
    match event.node:
        case ast.AugAssign(target=ast.Name() | ast.Attribute(), op=ast.Add()):
            return True
        case ast.Call(func=ast.Attribute(attr="add_")):
            return True
    return False


def _is_one_of_many(run: Run, site: int) -> bool:
    elements = (event.values["element"].what for event, _ in events(run.root, "iterate"))
    return any(isinstance(each, Tensor) and each.site == site for each in elements)


def _is_made_in(run: Run, total: Value, loop: Loop) -> bool:
    """Whether each round begins another total."""
    made = (made for _, made in computed_from(run, total))
    return any(each.by != EITHER and each.order > loop.begun for each in made)
