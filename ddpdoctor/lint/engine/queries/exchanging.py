"""Who waits for whom when ranks send to each other: the program is followed rank by rank."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Called, Choice, Event, Exit, Seq, events
from ddpdoctor.lint.engine.interpreter.values import RANKS, Const, Table
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
            left = _speak(node.body, rank, line)
            ended = ("return",) if isinstance(node, Called) else ("break", "continue")
            left = "" if left in ended else left
        if left:
            return left
    return ""


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
