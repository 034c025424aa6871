"""Who waits for whom, and whether that can ever end.

A deadlock is proven, not timed out. A rank that waits in a collective is waiting for every member
of the group to arrive there. It waits for ever if some member can never arrive: it is gone, or it
waits for ever itself, at something else. The greatest set of ranks that fulfils this is the
deadlock. Waiting is stable: if all of the set were seen waiting at one instant, none of them will
ever move. A send or recv waits for its counterpart alone. (The wait-for graph of MPI's tools: MUST,
Hilbrich et al. 2012.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ddpdoctor.evidence import Collective, Evidence, RankEvidence, Stuck, pair_key

GONE_GRACE = 0.5
"""Seconds that peers get to notice that a rank has left before they count as waiting for it."""

_SAME_SIZE = frozenset({"all_reduce", "reduce", "broadcast"})
_COUNTERPART = {"send": "recv", "recv": "send"}
_SAME_OP = {
    "allreduce": "all_reduce",
    "all_reduce_barrier": "barrier",
    "allgather": "all_gather",
    "_all_gather_base": "all_gather",
    "_allgather_base": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
}


@dataclass(frozen=True, slots=True)
class Blocked:
    """A rank that waits, and for whom."""

    rank: int
    collective: Collective
    """The oldest one that it waits for."""
    stuck: Stuck
    waits_for: tuple[int, ...]
    """The members that have not arrived; in a deadlock, those that never can."""


@dataclass(frozen=True, slots=True)
class Deadlock:
    """A set of ranks none of which will ever move again."""

    blocked: tuple[Blocked, ...]
    gone: tuple[int, ...]
    """Ranks that others wait for and that have ended, or will do nothing but end."""
    since: float
    """When the last of them began to wait."""


def communicating(evidence: Evidence) -> Deadlock | None:
    """The ranks that wait for each other in collectives. Waiting that may yet end is none."""
    held = _Held(evidence)
    if not held.parties:
        return None
    ranks, gone = held.ranks, held.gone | held.ending
    waiting = {rank.rank: rank for party in held.parties for rank in party}
    missing = tuple(sorted(gone & {member for absent in held.absent.values() for member in absent}))
    still = [*waiting.values(), *(ranks[each] for each in missing if each in held.ending)]
    seen_together = min(_stuck(rank).seen for rank in still)
    since = max(_stuck(rank).since for rank in still)
    ended = [fate.time + GONE_GRACE for r in missing if (fate := ranks[r].fate) is not None]
    if evidence.cut is not None:
        since = min(since, evidence.cut)
    elif max([since, *ended]) > seen_together:
        return None
    blocked = (each for party in held.parties for each in held.blocked(party))
    return Deadlock(tuple(sorted(blocked, key=lambda each: each.rank)), missing, since)


def may_communicate_no_more(evidence: Evidence) -> bool:
    """Whether there were a deadlock if all waits had been seen at one time."""
    return bool(_Held(evidence).parties)


def held_up(evidence: Evidence) -> list[Blocked]:
    """The ranks that wait in a collective, and for whom: members that have not come to it."""
    standing = _Standing({rank.rank: rank for rank in evidence.ranks}, set())
    late: dict[_Key, tuple[int, ...]] = {}
    found: list[Blocked] = []
    for party in standing.parties:
        if not _waits(party[0]) or not (calls := _waits_in(party[0])):
            continue
        first, key = calls[0], _key(party[0].rank, calls[0])
        if key not in late:
            has_arrived = standing.arrivals(party[0].rank, first)
            members = _members(party[0], first, standing.ranks)
            late[key] = tuple(member for member in members if not has_arrived(member))
        found += (Blocked(r.rank, _waits_in(r)[0], _stuck(r), late[key]) for r in party)
    return sorted(found, key=lambda each: each.rank)


_Party = list[RankEvidence]
"""Ranks that wait alike: what is so for the first of them is so for all."""


class _Standing:
    """The ranks that stand still, by how they do: there may be 100 000, and few ways."""

    def __init__(self, ranks: dict[int, RankEvidence], gone: set[int]) -> None:
        self.ranks, self.gone = ranks, gone
        self.parties: list[_Party] = []
        self._number: dict[int, int] = {}
        """That of a rank's party."""
        alike: dict[_Kind | int, int] = {}
        for rank in ranks.values():
            if rank.stuck is None or rank.rank in gone:
                continue
            kind = _kind(rank, rank.stuck)
            if (number := alike.get(kind)) is None:
                number = alike[kind] = len(self.parties)
                self.parties.append([])
            self.parties[number].append(rank)
            self._number[rank.rank] = number

    def arrivals(self, rank: int, collective: Collective) -> Callable[[int], bool]:
        """Whether a member has arrived: of those that wait alike it is reckoned once."""
        known: dict[int, bool] = {}
        ranks, numbers = self.ranks, self._number

        def has_arrived(member: int) -> bool:
            if (number := numbers.get(member)) is None:
                return _arrived(ranks[member], rank, collective)
            if number not in known:
                known[number] = _arrived(ranks[member], rank, collective)
            return known[number]

        return has_arrived


class _Held(_Standing):
    """The greatest set of ranks each of which waits for one that is gone, or held itself."""

    def __init__(self, evidence: Evidence) -> None:
        ranks = {rank.rank: rank for rank in evidence.ranks}
        fates = ((r, rank.fate) for r, rank in ranks.items())
        super().__init__(ranks, {r for r, fate in fates if fate and not fate.killed_by_us})
        self.parties = [party for party in self.parties if _waits(party[0])]
        ending = [rank for rank in evidence.ranks if rank.rank not in self.gone and _ends(rank)]
        while True:
            waiting = [rank for party in self.parties for rank in party]
            started = {(rank.boot, rank.parent) for rank in waiting if rank.parent}
            # Who waits, as it exits, for one of these to end, will do nothing else any more.
            self.ending = {rank.rank for rank in ending if (rank.boot, rank.pid) in started}
            self.stopped = self.gone | self.ending | {rank.rank for rank in waiting}
            self.absent = self._absent()
            held = [p for p in self.parties if all(self.absent[key] for key in _keys(p[0]))]
            if len(held) == len(self.parties):
                break
            self.parties = held

    def _absent(self) -> dict[_Key, tuple[int, ...]]:
        """For each collective that somebody waits in: its members that can never come to it."""
        absent: dict[_Key, tuple[int, ...]] = {}
        for rank, *_ in self.parties:
            for key, collective in zip(_keys(rank), _waits_in(rank), strict=True):
                if key not in absent:
                    absent[key] = self._missing(rank, collective)
        return absent

    def _missing(self, rank: RankEvidence, collective: Collective) -> tuple[int, ...]:
        """Who still runs may come: only those that are `stopped` never can."""
        has_arrived, stopped = self.arrivals(rank.rank, collective), self.stopped
        members = _members(rank, collective, self.ranks)
        return tuple(each for each in members if each in stopped and not has_arrived(each))

    def blocked(self, party: _Party) -> Iterator[Blocked]:
        """For whom its ranks wait; of calls that share a key and do not fit, the other party."""
        for first, key in zip(_waits_in(party[0])[:1], _keys(party[0])[:1], strict=True):
            theirs = self.absent[key]
            if party[0].rank in theirs:
                theirs = self._missing(party[0], first)
            for rank in party:
                yield Blocked(rank.rank, _waits_in(rank)[0], _stuck(rank), theirs)


_Kind = tuple[int, ...]


def _kind(rank: RankEvidence, stuck: Stuck) -> _Kind | int:
    """Which wait it is that this rank shares with others.

    Its own where it sends or receives, or where what it had called before is known.
    """
    if rank.collectives:
        return rank.rank
    for call in (*stuck.waiting, stuck.awaited):
        if call is not None and call.op in _COUNTERPART:
            return rank.rank
    return stuck.alike


def culprits(deadlock: Deadlock, ranks: Sequence[RankEvidence] = ()) -> tuple[int, ...]:
    """The fewest ranks whose mistake explains the deadlock; empty where that is undecidable.

    At each collective that somebody waits in, either those who came are wrong or those who did not.
    One mistake is likelier than several: the smallest party is it, over all these collectives. Of
    two equal parties, those who have left are it. Of a group's collectives only those count that
    have the lowest number: who got beyond it has met what was not meant for it, and is of the party
    that called the same there. Where `ranks` do not tell what it called, that is the party at whose
    line it stands now.
    """
    first: dict[str, int] = {}
    for each in deadlock.blocked:
        call = each.collective
        if call.op not in _COUNTERPART:
            first[call.group] = min(call.seq, first.get(call.group, call.seq))
    parties: dict[_Key, list[Blocked]] = {}
    for each in deadlock.blocked:
        call = each.collective
        if call.op in _COUNTERPART or call.seq == first[call.group]:
            parties.setdefault(_key(each.rank, call), []).append(each)
    found: set[tuple[int, ...]] = set()
    for present in parties.values():
        with_them, elsewhere = _beyond(present[0], deadlock, ranks)
        came = (*(each.rank for each in present), *with_them)
        absent = tuple(sorted({*present[0].waits_for, *elsewhere} - {*with_them}))
        if set(absent) <= {*deadlock.gone} and len(absent) <= len(came):
            found.add(absent)
        else:
            fewest = min(len(came), len(absent))
            found |= {party for party in (came, absent) if len(party) == fewest}
    fewest = min(map(len, found), default=0)
    smallest = [party for party in found if len(party) == fewest]
    return tuple(sorted(smallest[0])) if len(smallest) == 1 else ()


def _beyond(
    held: Blocked, deadlock: Deadlock, ranks: Sequence[RankEvidence]
) -> tuple[list[int], list[int]]:
    """Who waits in a later collective of that group: those of this rank's party, and others."""
    call = held.collective
    later = [
        each
        for each in deadlock.blocked
        if not {call.op, each.collective.op} & _COUNTERPART.keys()
        and each.collective.group == call.group
        and each.collective.seq > call.seq
    ]
    known = {rank.rank: rank.collectives for rank in ranks} if later else {}
    there = call.group, call.seq, None

    def is_with_them(each: Blocked) -> bool:
        calls = reversed(known.get(each.rank, ()))
        then = next((one for one in calls if (one.group, one.seq, one.peer) == there), None)
        if call.place is None or then is None or then.place is None:
            return each.stuck.place == held.stuck.place
        return (normal_op(then.op), then.place) == (normal_op(call.op), call.place)

    here = {each.rank: is_with_them(each) for each in later}
    return [r for r, is_here in here.items() if is_here], [
        r for r, is_here in here.items() if not is_here
    ]


def normal_op(op: str) -> str:
    """One name for one operation, whichever layer of torch wrote it down."""
    return _SAME_OP.get(op, op)


def _stuck(rank: RankEvidence) -> Stuck:
    assert rank.stuck is not None
    return rank.stuck


def _waits(rank: RankEvidence) -> bool:
    """Whether this rank's main thread idles inside torch with a collective outstanding."""
    stuck = rank.stuck
    if stuck is None or not stuck.waiting or stuck.other_threads_communicate:
        return False
    if not _has_issued_what_it_awaits(stuck):
        return False
    innermost = stuck.stack[-1].file
    if "/torch/utils/data/" in innermost:
        return False
    return "/torch/" in innermost or innermost.endswith("/ddpdoctor/watch/collectives.py")


def _ends(rank: RankEvidence) -> bool:
    """Whether this rank's program is over, and it waits for the processes that it has started."""
    stuck = rank.stuck
    if rank.exiting is None or stuck is None or stuck.waiting or stuck.other_threads_communicate:
        return False
    where = [(each.file.rpartition("/multiprocessing/")[2], each.function) for each in stuck.stack]
    return ("util.py", "_exit_function") in where and any(
        file == "process.py" and function.endswith("join") for file, function in where
    )


def _has_issued_what_it_awaits(stuck: Stuck) -> bool:
    """Else it went on while it was asked, and what it says is of two moments."""
    call = stuck.awaited
    if call is None or call in stuck.waiting:
        return True
    pair = pair_key(call.group, call.op, call.peer, call.tag)
    return stuck.issued.get(pair if call.op in _COUNTERPART else call.group, 0) >= call.seq


def _waits_in(rank: RankEvidence) -> tuple[Collective, ...]:
    """What must complete before the main thread goes on; all that is outstanding, if unknown."""
    stuck = _stuck(rank)
    return stuck.waiting if stuck.awaited is None else (stuck.awaited,)


_Key = tuple[str, int, str, int | None, int | None, int]


def _key(rank: int, collective: Collective) -> _Key:
    """What ranks wait for together has one key; a send or recv, one for each pair of ranks."""
    op = normal_op(collective.op)
    me = rank if op in _COUNTERPART else None
    return collective.group, collective.seq, op, me, collective.peer, collective.tag


def _keys(rank: RankEvidence) -> list[_Key]:
    return [_key(rank.rank, call) for call in _waits_in(rank)]


def _members(
    rank: RankEvidence, collective: Collective, ranks: dict[int, RankEvidence]
) -> Iterable[int]:
    """The ranks that it needs. A recv from anybody needs no certain one."""
    if collective.op in _COUNTERPART:
        return () if collective.peer is None else (collective.peer,)
    group = rank.groups.get(collective.group)
    return group.ranks if group is not None else ranks


def _arrived(member: RankEvidence, rank: int, collective: Collective) -> bool:
    """Whether a member that waits or is gone has issued this very collective.

    Or, for a send or recv of `rank`, its counterpart.
    """
    group, seq = collective.group, collective.seq
    if counterpart := _COUNTERPART.get(collective.op):
        key = pair_key(group, counterpart, rank, collective.tag)
        anybody = pair_key(group, counterpart, None, collective.tag)
        return _issued_pairs(member, key, anybody) >= seq
    if (theirs := _record(member, group, seq)) is not None:
        return agree(theirs, collective)
    if member.stuck is not None:
        return member.stuck.issued.get(group, 0) >= seq
    return any(c.group == group and c.seq >= seq and c.peer is None for c in member.collectives)


def _record(member: RankEvidence, group: str, seq: int) -> Collective | None:
    """What a rank wrote down about the collective of this number."""
    waiting = member.stuck.waiting if member.stuck is not None else ()
    for known in (waiting, reversed(member.collectives)):
        for each in known:
            if (each.group, each.seq) == (group, seq) and each.op not in _COUNTERPART:
                return each
    return None


def agree(one: Collective, other: Collective) -> bool:
    """Whether two ranks' calls of the same number can complete together."""
    op = normal_op(one.op)
    if op != normal_op(other.op):
        return False
    if one.root != other.root and None not in (one.root, other.root):
        return False
    if op == "new_group":
        return one.shapes == other.shapes
    # Two of DDP's own are alike where the models are. What C++ issued may be without its sizes.
    by_hand = bool(one.place) + bool(other.place)
    if op not in _SAME_SIZE or not by_hand or (by_hand == 1 and not (one.shapes and other.shapes)):
        return True
    return [prod(shape) for shape in one.shapes] == [prod(shape) for shape in other.shapes]


def _issued_pairs(member: RankEvidence, *keys: str) -> int:
    """How many sends or recvs of these kinds a member has issued."""
    if member.stuck is not None:
        return sum(member.stuck.issued.get(key, 0) for key in keys)
    mine = (pair_key(c.group, c.op, c.peer, c.tag) for c in member.collectives)
    return sum(key in keys for key in mine)
