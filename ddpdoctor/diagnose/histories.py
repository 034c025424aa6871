"""The collectives of several ranks side by side: where they first part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import prod
from typing import Any

from ddpdoctor.catalog import RankPlace
from ddpdoctor.diagnose.waiting import normal_op
from ddpdoctor.evidence import Collective, Place, RankEvidence, named

_Way = tuple[str, tuple[Place | None, ...]]
_COMPARED = 400
"""So many of the latest collectives of a rank are compared line by line."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first collective of a group that its ranks called with different arguments."""

    calls: dict[int, Collective]
    """By rank."""
    what: str
    """What differs: sizes, dtypes, roots, reduce ops."""


def mismatches(ranks: Iterable[RankEvidence]) -> Iterator[Mismatch]:
    """One for each group in which all agree on the operation and not on its arguments.

    Where the operations themselves differ the ranks are out of step, and what follows in that group
    says nothing about arguments.
    """
    together: dict[tuple[str, int, int, int], dict[int, dict[int, Collective]]] = {}
    for rank in ranks:
        for call in rank.collectives:
            group = rank.groups.get(call.group)
            if group is not None and call.op not in ("send", "recv"):
                key = (group.name, len(group.ranks), group.ranks[0], group.ranks[-1])
                numbers = together.setdefault(key, {})
                numbers.setdefault(call.seq, {})[rank.rank] = call
    backends = {name: g.backend for rank in ranks for name, g in rank.groups.items()}
    for (name, *_), numbers in together.items():
        for _, calls in sorted(numbers.items()):
            if len({normal_op(call.op) for call in calls.values()}) > 1:
                break
            if what := _difference(calls, uneven="nccl" in backends[name]):
                yield Mismatch(calls, what)
                break


def _difference(calls: dict[int, Collective], *, uneven: bool) -> str:
    """What the ranks disagree on. NCCL gathers tensors of unequal sizes."""
    op = normal_op(next(iter(calls.values())).op)
    facts: dict[str, set[Any]] = {
        "roots": {call.root for call in calls.values()},
        "dtypes": {call.dtype for call in calls.values() if call.dtype},
        "reduce ops": {call.reduce_op for call in calls.values()},
    }
    if op in ("all_reduce", "reduce", "broadcast", "gather") or (op == "all_gather" and not uneven):
        facts["sizes"] = {tuple(map(prod, call.shapes)) for call in calls.values()}
    if op in ("scatter", "barrier", "monitored_barrier"):
        del facts["dtypes"]
    return " and ".join(name for name, values in facts.items() if len(values) > 1)


def extra_call(one: RankEvidence, other: RankEvidence, group: str) -> Collective | None:
    """The first collective that `one` called and `other` left out, before where they are now.

    Ranks that are out of step still meet in calls of the same kind, and part for good only later.
    Who called a line as often, in another order, has not left it out; nor has who called the same
    at a line of its own, which the one never comes to.
    """
    mine, theirs = _calls(one, group), _calls(other, group)
    # It may have gone on to what C++ issues for DDP, which is not among the calls.
    now = one.stuck.issued.get(group, 0) if one.stuck is not None else 0
    before = mine if mine and mine[-1].seq < now else mine[:-1]
    left_out = _left_out(mine, theirs)
    matcher = SequenceMatcher(None, [*map(_way, mine)], [*map(_way, theirs)], autojunk=False)
    for kind, begin, end, _, _ in matcher.get_opcodes():
        if kind == "delete" and end <= len(before):
            # Of calls at one line, the matcher takes any for the one that is too many.
            lines = {*map(_way, mine[begin:end])}
            found = next((c for c in before if c.seq in left_out and _way(c) in lines), None)
            if found is not None:
                return found
    return None


def parting(
    ranks: Sequence[RankEvidence], parties: Sequence[tuple[int, ...]], group: str
) -> Iterator[RankPlace]:
    """Where the parties first went different ways, if that was before where they are now."""
    most = max(parties, key=len, default=())
    for others in parties:
        for party, rest in ((others, most), (most, others)):
            call = extra_call(ranks[party[0]], ranks[rest[0]], group) if party != rest else None
            if call is not None:
                doing = f"{call.op} #{call.seq}, which {named(rest)} never called"
                yield RankPlace(ranks=party, place=call.place, doing=doing, stack=call.way)
                return


def _left_out(mine: list[Collective], theirs: list[Collective]) -> set[int]:
    """The numbers of mine whose line is ahead, from there to the last number that both have."""
    ends = min((calls[-1].seq for calls in (mine, theirs) if calls), default=0)
    own, same = ({call.seq: _way(call) for call in calls} for calls in (mine, theirs))
    ahead: Counter[_Way] = Counter()
    found: dict[_Way, list[int]] = {}
    lines = {*own.values()}
    for number in sorted(each for each in {*own, *same} if each <= ends):
        line, met = own.get(number), same.get(number)
        ahead.update([line] if line is not None else [])
        ahead.subtract([met] if met is not None else [])
        is_answer = line is not None and met is not None and line[0] == met[0] and met not in lines
        if line is not None and not is_answer:
            found.setdefault(line, []).append(number)
        for each in (line, met):
            if each is not None and ahead[each] <= 0:
                found.pop(each, None)
    later = {call.seq for call in mine if call.seq > ends}
    return later.union(*found.values())


def last_together(ranks: Sequence[RankEvidence], group: str, number: int) -> Collective | None:
    """The collective before this number, if all of them came to it by the same lines.

    What C++ issues for DDP is not among the calls, and has no line.
    """
    wanted = group, number - 1, None
    calls = [
        next((c for c in reversed(rank.collectives) if (c.group, c.seq, c.peer) == wanted), None)
        for rank in ranks
    ]
    first = calls[0] if calls else None
    if first is None or first.place is None:
        return None
    return first if all(c is not None and _way(c) == _way(first) for c in calls) else None


def _calls(rank: RankEvidence, group: str) -> list[Collective]:
    calls = [c for c in rank.collectives if c.group == group and c.peer is None]
    return calls[-_COMPARED:]


def _way(call: Collective) -> _Way:
    """What tells a call from others: one line may be come to from many, as that of a layer."""
    return normal_op(call.op), (*call.way, call.place)
