"""How many batches a loader over a stream has: as many as the rank keeps of what it is dealt."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.machine import KEPT, Machine
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Seq, Step, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    Const,
    Ref,
    Term,
    Value,
    local,
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
    for event, way in events(workers, "yielded"):
        if _is_of_own_parts(event, way):
            why = vm.why(OWN_LENGTH, event.node)
            vm.store.put((loader, "#uneven"), Value(NOTHING, local("data", False), why))


def _is_of_own_parts(event: Event, way: tuple[Step, ...]) -> bool:
    """Whether the rank is dealt files, documents or the like, and yields what is in them."""
    dealt = next((n for n, step in enumerate(way) if _deals(step)), None)
    if dealt is None:
        return False
    first = dealt + 1 if _goes_through_own(way[dealt]) else dealt
    counts = [step.node.count for step in way[first:] if isinstance(step.node, Loop)]
    return any(map(_is_open, [*counts, *event.values.values()]))


def _deals(step: Step) -> bool:
    """Whether a rank goes on from here with its own part alone."""
    asked = [each.condition for each in step.seq.items[: step.index] if isinstance(each, Choice)]
    asked += [step.node.condition] if isinstance(step.node, Choice) else []
    return any(map(_is_own, asked)) or _goes_through_own(step)


def _goes_through_own(step: Step) -> bool:
    """Whether it is a loop through the rank's own part."""
    before = step.seq.items[step.index - 1] if step.index else None
    if not isinstance(step.node, Loop) or not isinstance(before, Event) or before.kind != "iterate":
        return False
    return _is_own(before.values.get("content", before.values["element"]))


def _is_own(value: Value) -> bool:
    return value.agree.kind == "rank" or value.agree.cause == "shard"


def _is_open(count: Value) -> bool:
    """Whether it is not known how often, or not that it is as often for all."""
    what = count.what
    if isinstance(what, Term) and what.op == "range":
        return not all(isinstance(each, Const) for each in what.args)
    return not isinstance(what, Const)
