"""Who waits for whom when ranks send to each other: the program is followed rank by rank."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter import folding
from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import (
    Called,
    Choice,
    Event,
    Exit,
    Loop,
    Seq,
    Way,
    events,
    walk,
)
from ddpdoctor.lint.engine.interpreter.values import (
    NONE,
    RANKS,
    Const,
    Table,
    Term,
    Value,
    What,
    within,
)
from ddpdoctor.lint.engine.queries.words import is_world


class _Unknown(Exception):
    """Something cannot be told: who sends, or to whom."""


def rings(run: Run) -> Iterator[tuple[Event, ...]]:
    """Blocking calls of ranks that wait for each other in a ring, from the lowest rank on."""
    found = [event for event, _ in events(run.root, "send", "recv")]
    apart = any(event.name.endswith(("isend", "irecv")) for event, _ in events(run.root, "new"))
    if not found or apart or not all(is_world(each.values.get("group")) for each in found):
        return
    try:
        lines: list[list[tuple[Event, int]]] = [[] for _ in range(RANKS)]
        for rank, line in enumerate(lines):
            _speak(run.root, rank, line)
    except _Unknown:
        return
    waiting = _follow(lines)
    told: set[int] = set()
    for rank in waiting:
        ring = [rank]
        while (peer := waiting.get(ring[-1], (None, -1))[1]) not in ring and peer in waiting:
            ring.append(peer)
        if peer == rank and len(ring) > 1 and rank not in told:
            told |= {*ring}
            yield tuple(waiting[each][0] for each in ring if waiting[each][0] is not None)


def _speak(seq: Seq, rank: int, line: list[tuple[Event, int]]) -> str:
    """Add what a rank sends and receives, and with whom, of a loop one round; how it leaves.

    A way out that nobody knows the rank to take is not taken. Raises _Unknown.
    """
    for node in seq.items:
        left = ""
        if isinstance(node, Event):
            if node.kind in ("send", "recv"):
                line.append((node, _peer(node, rank)))
        elif isinstance(node, Exit):
            left = node.kind
        elif isinstance(node, Choice):
            left = _speak_in(node, rank, line)
        else:
            if isinstance(node, Loop) and _ends_within_a_round(node):
                raise _Unknown
            left = _speak(node.body, rank, line)
            ended = ("return",) if isinstance(node, Called) else ("break", "continue")
            left = "" if left in ended else left
        if left:
            return left
    return ""


def _ends_within_a_round(loop: Loop) -> bool:
    """Whether it is left by a `break` alone, before the messages of a round: the last has none."""
    is_endless = isinstance(loop.node, ast.While) and isinstance(loop.node.test, ast.Constant)
    leaves = [
        way for node, way in walk(loop.body) if isinstance(node, Exit) and node.kind == "break"
    ]
    spoken = [way for _, way in events(loop.body, "send", "recv")]
    return is_endless and any(
        way[0].seq is left[0].seq and way[0].index > left[0].index
        for left in leaves
        for way in spoken
    )


def _speak_in(choice: Choice, rank: int, line: list[tuple[Event, int]]) -> str:
    for arm in choice.arms:
        if not arm.mask & (1 << rank):
            continue
        if not arm.opened & (1 << rank):
            return _speak(arm.body, rank, line)
        if any(True for _ in events(arm.body, "send", "recv")):
            raise _Unknown
    return ""


def _peer(event: Event, rank: int) -> int:
    peer = event.values.get("peer")
    what = peer.what if peer is not None and peer.agree.sure else None
    if isinstance(what, Table) and isinstance(what.entries[rank], int):
        return int(what.entries[rank])
    if isinstance(what, Const) and isinstance(what.value, int):
        return what.value
    raise _Unknown


def _follow(lines: list[list[tuple[Event, int]]]) -> dict[int, tuple[Event, int]]:
    """The ranks that cannot go on, each with what it waits in and for whom."""
    at = [0] * len(lines)
    moved = True
    while moved:
        moved = False
        for rank, line in enumerate(lines):
            if at[rank] == len(line):
                continue
            event, peer = line[at[rank]]
            if not 0 <= peer < len(lines) or at[peer] == len(lines[peer]):
                continue
            other, back = lines[peer][at[peer]]
            if back == rank and {event.kind, other.kind} == {"send", "recv"}:
                at[rank] += 1
                at[peer] += 1
                moved = True
    return {rank: line[at[rank]] for rank, line in enumerate(lines) if at[rank] < len(line)}


def never_sent(run: Run) -> Iterator[tuple[tuple[Event, Way], tuple[Event, Way]]]:
    """Receives of a tag that nobody sends, each with a send of another."""
    calls = list(events(run.root, "send", "recv"))
    apart = any(event.name.endswith(("isend", "irecv")) for event, _ in events(run.root, "new"))
    sends = [each for each in calls if each[0].kind == "send"]
    counted = {
        event.values["element"].what: event.values["content"].what
        for event, _ in events(run.root, "iterate")
    }
    tags = {event: _tags(event.values.get("tag", _UNTAGGED).what, counted) for event, _ in calls}
    if apart or not sends or any(each is None for each in tags.values()):
        return
    for event, way in calls:
        if event.kind != "recv":
            continue
        # Nobody sends to himself: who is sent to is not who is waited for.
        others = [
            each for each in sends if (to := _one_peer(each[0])) is None or to != _one_peer(event)
        ]
        sent = {tag for each, _ in others for tag in tags[each] or ()}
        if others and not (tags[event] or set()) <= sent:
            yield (event, way), others[0]


def _one_peer(event: Event) -> int | None:
    """The rank that is sent to or received from, where it is one and the same for all."""
    what = event.values.get("peer", NONE).what
    found = {folding.in_round(what, rank, 0) for rank in range(RANKS)}
    peer = found.pop() if len(found) == 1 else None
    return peer if isinstance(peer, int) else None


def _tags(what: What, counted: dict[What, What]) -> set[int] | None:
    """All that a tag may be in any round and on any rank; None where that is not known."""
    counters = [each for each in within(what) if isinstance(each, Term) and each.op == "counter"]
    ranges = []
    for counter in dict.fromkeys(counters):
        over = counted.get(counter)
        bounds = [each.value for each in over.args] if _is_range(over) else []  # type: ignore[union-attr]
        if not bounds or len(rounds := range(*bounds)) > _MOST:
            return None
        ranges.append([(counter, number) for number in rounds])
    if math.prod(map(len, ranges)) > _MOST:
        return None
    found: set[int] = set()
    for given in itertools.product(*ranges):
        for rank in range(RANKS):
            tag = folding.in_round(what, rank, dict(given))
            if not isinstance(tag, int):
                return None
            found.add(tag)
    return found


def _is_range(what: What | None) -> bool:
    return (
        isinstance(what, Term)
        and what.op == "range"
        and all(isinstance(each, Const) and isinstance(each.value, int) for each in what.args)
    )


_MOST = 1000
_UNTAGGED = Value(Const(0))
