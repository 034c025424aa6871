"""Who waits for whom when ranks send to each other: the program is followed rank by rank."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Choice, Event, Exit, Seq, events
from ddpdoctor.lint.engine.interpreter.values import RANKS, Const, Table
from ddpdoctor.lint.engine.queries.words import is_world

_MOST = 200


class _Unknown(Exception):
    """Something cannot be told: who sends, or to whom."""


def rings(run: Run) -> Iterator[tuple[Event, ...]]:
    """Blocking calls of ranks that wait for each other in a ring, from the lowest rank on."""
    found = [event for event, _ in events(run.root, "send", "recv")]
    apart = any(event.name.endswith(("isend", "irecv")) for event, _ in events(run.root, "new"))
    if not found or apart or not all(is_world(each.values.get("group")) for each in found):
        return
    try:
        lines = [list(_said(run.root, rank)) for rank in range(RANKS)]
    except _Unknown:
        return
    waiting = _follow(lines)
    told: set[int] = set()
    for rank in waiting:
        ring = [rank]
        while (peer := waiting.get(ring[-1], (None, -1))[1]) not in ring and peer in waiting:
            ring.append(peer)
        if peer == rank and rank not in told:
            told |= {*ring}
            yield tuple(waiting[each][0] for each in ring if waiting[each][0] is not None)


def _said(seq: Seq, rank: int) -> Iterator[tuple[Event, int]]:
    """What a rank sends and receives, and with whom; of a loop one round. Raises _Unknown."""
    for node in seq.items:
        if isinstance(node, Event):
            if node.kind in ("send", "recv"):
                yield node, _peer(node, rank)
        elif isinstance(node, Exit):
            if _talks(seq):
                return
        elif isinstance(node, Choice):
            arms = [arm for arm in node.arms if arm.mask & (1 << rank) and _talks(arm.body)]
            if any(arm.opened & (1 << rank) for arm in arms):
                raise _Unknown
            for arm in arms:
                yield from _said(arm.body, rank)
        else:
            yield from _said(node.body, rank)


def _talks(seq: Seq) -> bool:
    return any(True for _ in events(seq, "send", "recv"))


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
    for _ in range(_MOST):
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
        if not moved:
            break
    return {rank: line[at[rank]] for rank, line in enumerate(lines) if at[rank] < len(line)}
