"""Running total reduced in every round.

## What it does
Finds a loop that adds to a total and sums that total over the ranks, in place, in every round; and
a tensor that is summed over the ranks, summed again as it is, and then divided. So are gradients
that are summed after each of several backwards, and emptied after the last.

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
from typing import TypeGuard

from ddpdoctor.lint.engine.interpreter.machine import EITHER
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Loop,
    Node,
    Seq,
    Step,
    Way,
    events,
)
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    Const,
    Ref,
    Tensor,
    Term,
    Tuple,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.libraries.torch import DIVISIONS, VIEWS
from ddpdoctor.lint.engine.queries.partings import leaves
from ddpdoctor.lint.engine.queries.reducing import divides, is_gradient, scaled_gradients, sums
from ddpdoctor.lint.engine.queries.wrapping import computed_from
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP421", name="reduced-twice", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the reductions of totals that go on to grow."""
    told: set[int] = set()
    for event, way in events(run.root, "collective"):
        total = event.values.get("shares")
        if event.name != "all_reduce" or not sums(event) or id(event.node) in told:
            continue
        if total is None or not isinstance(total.what, Tensor):
            continue
        grown = _grown(run, way, total)
        if grown is not None:
            told.add(id(event.node))
            yield Hit(
                event.node,
                "the running total is summed in every round, with what was summed before",
                notes=(Related.at(grown.place, "it grows"), *_called(way)),
                help="reduce it once, behind the loop, or reduce what is added",
                path=event.path,
            )
    yield from _at_once(run)
    yield from _gradients_again(run)


def _called(way: Way) -> Iterator[Related]:
    """Who hands the total to the function that reduces it."""
    for step in reversed(way):
        if isinstance(step.node, Called):
            yield Related.at(step.node.place, f"{step.node.name}() reduces it")
            return
        if isinstance(step.node, Loop):
            return


def _gradients_again(run: Run) -> Iterator[Hit]:
    """Gradients that are summed after each backward, while those before it are still in them."""
    scaled = [way for _, way, *_ in scaled_gradients(run)]
    for event, way in events(run.root, "collective"):
        shared = event.values.get("shares")
        if event.name != "all_reduce" or not sums(event) or shared is None:
            continue
        options = (each.what for each in run.vm.store.options(shared))
        if not any(_is_of_a_gradient(part) for each in options for part in within(each)):
            continue
        at = next((n for n in range(len(way) - 1, -1, -1) if _learns(way[n].node)), None)
        if at is None or any(isinstance(step.node, Choice) for step in way[at:]):
            continue
        loop = way[at].node
        assert isinstance(loop, Loop)
        if any(step.node is loop for each in scaled for step in each) or _empties(loop, False):
            continue
        around = [step.node for step in way[:at] if _learns(step.node)]
        if _empties(loop, True) or any(_empties(each, True) for each in around):
            yield Hit(
                event.node,
                "the gradients are summed after each backward, with those that were summed before",
                notes=(Related.at(loop.place, "in each round of this they are added up"),),
                help="reduce them once, before the step",
                path=event.path,
            )
            return


def _is_of_a_gradient(what: object) -> bool:
    return isinstance(what, Term) and is_gradient(what)


def _learns(node: Node) -> TypeGuard[Loop]:
    """Whether it is a loop with a backward in it."""
    return isinstance(node, Loop) and any(True for _ in events(node.body, "backward"))


def _empties(loop: Loop, may_choose: bool) -> bool:
    """Whether gradients are set to nothing in every round, or in those that a condition chooses."""
    return any(
        (event.kind == "zero_grad" or event.name in ("grad", "zero_"))
        and (may_choose or not any(isinstance(step.node, Choice) for step in way))
        for event, way in events(loop.body, "zero_grad", "set_attribute", "change")
    )


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
        made.by in DIVISIONS and made.order > since and made.of and made.of[0].what == total
        for made in run.vm.made.values()
    )
    return by_hand or any(
        event.order >= since and event.values["object"].what == total and divides(event)
        for event, _ in events(run.root, "change")
    )


def _grown(run: Run, way: Way, total: Value) -> Event | None:
    """Where a tensor is added to in each round of a loop that reduces it, with no other in between.

    A loop that has a tensor of its own for each of its rounds is but a part of a round.
    """
    assert isinstance(total.what, Tensor)
    site = total.what.site
    for step in _loops(way):
        loop = step.node
        assert isinstance(loop, Loop)
        if (anew := _made_anew(run, loop, total.what)) is not None:
            return anew
        sums: dict[ast.AST, Event] = {
            event.node: event
            for event, _ in events(loop.body, "add_up")
            if isinstance(event.node, ast.AugAssign) and isinstance(event.node.op, ast.Add)
        }
        changes = list(_changes(run, loop.body, site))
        if not changes or any(_differs(step, site, sums.get(each.node)) for each, _ in changes):
            continue
        if _is_made_in(run, total, loop):
            return None
        elements = {each.target for each in sums if isinstance(each, ast.AugAssign)}
        for each, inside in changes:
            added = sums.get(each.node)
            is_of_round = any(_differs(one, site, added) for one in inside)
            is_one = is_of_round or _is_one(run, way, site, added)
            if each.node not in elements and not (_adds(each) and is_one):
                return None
        return changes[0][0]
    return None


def _loops(way: Way) -> Iterator[Step]:
    """The loops around, innermost first, of which every round does it, if there is a second."""
    for step in reversed(way):
        choice = step.node if isinstance(step.node, Choice) else None
        if choice is not None and not _is_of_objects(choice) and not _comes_again(choice):
            return
        if isinstance(step.node, Loop):
            left = leaves(step.node.body)
            if left is not None and left.kind != "continue":
                return
            yield step


def _made_anew(run: Run, loop: Loop, total: Tensor) -> Event | None:
    """Where each round adds to what the last round has reduced, and makes another tensor of it."""
    made = run.vm.made.get(total)
    if made is None or made.by != "Add":
        return None
    for event, _ in events(loop.body, "add_up"):
        old = event.values["old"].what
        if event.values["value"].what != total or all(each.what != old for each in made.of):
            continue
        before, todo = set[What](), [old]
        while todo:
            each = todo.pop()
            if each not in before:
                before.add(each)
                joined = run.vm.made.get(each)
                todo += [one.what for one in joined.of] if joined and joined.by == EITHER else []
        others = (run.vm.made.get(each) for each in before - {total})
        if total in before and all(
            each is None or each.by == EITHER or each.order <= loop.begun for each in others
        ):
            return event
    return None


def _differs(step: Step, site: int, added: Event | None) -> bool:
    """Whether each round of a loop has another: what it goes through, or what is under that."""
    begun = step.begun if isinstance(step.node, Loop) else None
    if begun is None:
        return False
    one = list(_parts(begun.values["element"]))
    if any(isinstance(each, Tensor) and each.site == site for each in one):
        return True
    if added is None or "owner" not in added.values:
        return False
    owner, key = added.values["owner"].what, added.values["key"].what
    is_kept = isinstance(owner, Ref) and key != NONE.what
    return owner in one or (
        is_kept and (_is_unrolled(step) or not set(one).isdisjoint(within(key)))
    )


def _parts(value: Value) -> Iterator[What]:
    """What a loop goes through, and of tuples each part."""
    yield value.what
    for each in value.what.items if isinstance(value.what, Tuple) else ():
        yield from _parts(each)


def _is_one(run: Run, way: Way, site: int, added: Event | None) -> bool:
    """Whether it is the same tensor in each round, and not another that was made where it was."""
    values = added.values if added is not None else {}
    owner, key = values.get("owner", NONE), values.get("key", NONE)
    makes = (made for each, made in events(run.root, "make") if each.values["object"] == owner)
    around = {id(step.node) for step in way}
    return (
        isinstance(key.what, Const)
        and not _is_one_of_many(run, site)
        and all(
            id(step.node) in around or not isinstance(step.node, Loop) or _is_unrolled(step)
            for step in next(makes, ())
        )
    )


def _is_unrolled(step: Step) -> bool:
    """Whether a loop is gone through round by round, each with things of its own."""
    return step.begun is not None and isinstance(step.begun.values["content"].what, Tuple)


def _is_of_objects(choice: Choice) -> bool:
    """Whether it is of which of several objects something is called, as of each of a container."""
    return isinstance(choice.node, ast.Call)


def _comes_again(choice: Choice) -> bool:
    """Whether a condition is true in every so many rounds: `step % 10 == 0`."""
    parts = within(choice.condition.what)
    return choice.condition.agree.kind == "same" and any(
        isinstance(each, Term) and each.op == "Mod" for each in parts
    )


def _changes(run: Run, seq: Seq, site: int) -> Iterator[tuple[Event, Way]]:
    """What is written into a tensor, wherever it was computed since, or into a view of it."""
    for event, way in events(seq, "change", "set_attribute"):
        if event.kind == "change" or event.name == "data":
            owner = event.values["object" if event.kind == "change" else "owner"]
            if site in _seen_through(run, owner):
                yield event, way


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
    """Whether something grows."""
    match event.node:
        case ast.AugAssign(op=ast.Add()):
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
