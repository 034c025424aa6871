"""How many batches a loader over a stream has: as many as the rank keeps of what it is dealt."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.machine import KEPT, Machine
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Seq, Step, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    SAME,
    Ref,
    Tensor,
    Term,
    Value,
    local,
    within,
)

OWN_LENGTH = "each rank has samples of its own part alone, of which each may give another number"


def note_count(vm: Machine, loader: Ref, workers: Seq, node: ast.AST) -> None:
    """Remember of a loader that ranks may have different numbers of batches of it."""
    for each in workers.items:
        count = each.values.get("count", NONE) if isinstance(each, Event) else NONE
        chain = count.why.chain() if count.agree.kind == "local" and count.why else ()
        if any(why.text == KEPT for why in chain):
            why = vm.why(KEPT, node)
            vm.store.put((loader, "#uneven"), Value(NOTHING, local("data", False), why))
    uneven: Event | None = None
    for event, way in events(workers, "yielded", "bound"):
        if event.kind == "bound":
            uneven = None if _is_agreed_on(event.values["bound"]) else uneven
        elif _is_of_own_parts(way):
            uneven = event
    if uneven is not None:
        why = vm.why(OWN_LENGTH, uneven.node)
        vm.store.put((loader, "#uneven"), Value(NOTHING, local("data", False), why))


def _is_agreed_on(bound: Value) -> bool:
    """Whether a number is alike on all ranks and was computed: so may be what each of them has."""
    return bound.agree == SAME and isinstance(bound.what, Tensor)


def _is_of_own_parts(way: tuple[Step, ...]) -> bool:
    """Whether the rank is dealt documents or the like, and yields each in parts."""
    dealt = next((n for n, step in enumerate(way) if _deals(step)), None)
    if dealt is None:
        return False
    first = dealt + 1 if _goes_through_own(way[dealt]) else dealt
    return any(isinstance(step.node, Loop) and _is_as_long(step.node.count) for step in way[first:])


def _deals(step: Step) -> bool:
    """Whether a rank goes on from here with its own part alone."""
    asked = [each.condition for each in step.seq.items[: step.index] if isinstance(each, Choice)]
    asked += [step.node.condition] if isinstance(step.node, Choice) else []
    return any(map(_is_own, asked)) or _goes_through_own(step)


def _goes_through_own(step: Step) -> bool:
    """Whether it is a loop through the rank's own part."""
    if not isinstance(step.node, Loop) or step.begun is None:
        return False
    return _is_own(step.begun.values["content"])


def _is_own(value: Value) -> bool:
    return value.agree.kind == "rank" or value.agree.cause == "shard"


def _is_as_long(count: Value) -> bool:
    """Whether a loop runs as often as a thing is long; files as such may all hold as much."""
    what = count.what
    return (
        isinstance(what, Term)
        and what.op == "range"
        and any(isinstance(each, Term) and each.op == "len" for each in within(what))
    )
