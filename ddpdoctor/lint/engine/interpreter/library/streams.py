"""How many batches a loader over a stream has: as many as the rank keeps of what it is dealt."""

from __future__ import annotations

import ast

from ddpdoctor.lint.engine.interpreter.iteration import drops_the_rest
from ddpdoctor.lint.engine.interpreter.machine import KEPT, Machine
from ddpdoctor.lint.engine.interpreter.store import ROUNDS
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Loop, Seq, Step, events
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    NOTHING,
    SAME,
    Ref,
    Tensor,
    Term,
    Value,
    What,
    how_many,
    local,
    within,
)

OWN_LINES = "the lines of a file are dealt out one by one: some ranks get one more than others"
OWN_LENGTH = "each rank has samples of its own part alone, of which each may give another number"


def note_count(vm: Machine, loader: Ref, workers: Seq, node: ast.AST) -> None:
    """Remember of a loader that ranks may have different numbers of batches of it."""
    for each in workers.items:
        count = each.values.get("count", NONE) if isinstance(each, Event) else NONE
        chain = count.why.chain() if count.agree.kind == "local" and count.why else ()
        if any(why.text == KEPT for why in chain):
            why = vm.why(KEPT, node)
            vm.store.put((loader, "#uneven"), Value(NOTHING, local("data", False), why))
    uneven: tuple[Event, str] | None = None
    for event, way in events(workers, "yielded", "bound"):
        if event.kind == "bound":
            uneven = None if _is_agreed_on(event.values["bound"]) else uneven
        elif _is_of_own_parts(way):
            uneven = event, OWN_LENGTH
        elif _is_of_own_lines(vm, way) and not drops_the_rest(vm, loader):
            uneven = event, OWN_LINES
    if uneven is not None:
        why = vm.why(uneven[1], uneven[0].node)
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


def _is_of_own_lines(vm: Machine, way: tuple[Step, ...]) -> bool:
    """Whether the rank goes once through a file, as nobody has cut it, and takes its own lines."""
    for number, step in enumerate(way):
        if isinstance(step.node, Loop) and isinstance(step.node.node, ast.While):
            return False  # there is no end to it, or its own
        if _goes_through_a_file(vm, step):
            return any(map(_deals, way[number + 1 :]))
    return False


def _goes_through_a_file(vm: Machine, step: Step) -> bool:
    """Whether it is a loop through the lines of an open file, numbered or not."""
    if not isinstance(step.node, Loop) or step.begun is None:
        return False
    over, content = step.begun.values["over"], step.begun.values["content"]
    return _is_of_a_file(vm, over.what) or _is_of_a_file(vm, how_many(content.what))


def _is_of_a_file(vm: Machine, what: What) -> bool:
    """Whether it is an open file, all its lines, or as many as there are of them."""
    match what:
        case Ref(number=number):
            return vm.objects[number].type == "file"
        case Term(op="call", args=("readlines", of, *_)):
            return _is_of_a_file(vm, of)
        case Term(op=op, args=(of,)):
            return op == ROUNDS and _is_of_a_file(vm, of)
    return False


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
