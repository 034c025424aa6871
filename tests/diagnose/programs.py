"""Random SPMD programs, run by a model of ranks that communicate: groups, async, roots, p2p."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from ddpdoctor.evidence import (
    Collective,
    Evidence,
    Fate,
    Group,
    Place,
    RankEvidence,
    Stuck,
    pair_key,
)

WAIT = Place("/site-packages/torch/distributed/distributed_c10d.py", 1, "wait")
NOW = 100.0
ROOTED = ("broadcast", "reduce")
OPS = ("all_reduce", "all_gather", "barrier", *ROOTED)


@dataclass(frozen=True)
class Call:
    """One line of the program, as one rank runs it."""

    line: int
    op: str
    group: str = "0"
    shape: tuple[int, ...] = (3,)
    root: int | None = None
    peer: int | None = None
    tag: int = 0
    waited: bool = True
    """False for an async_op that is waited for at the end of the program only."""

    @property
    def place(self) -> Place:
        return Place("/home/user/train.py", self.line, "main")


@dataclass(frozen=True)
class Defect:
    """What one rank does otherwise."""

    kind: str
    """omit, repeat, rename, root or shape."""
    rank: int
    line: int


@dataclass
class Rank:
    """How far one rank has come."""

    program: list[Call]
    at: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    issued: list[Collective] = field(default_factory=list)
    pending: list[Collective] = field(default_factory=list)
    awaited: Collective | None = None

    @property
    def ended(self) -> bool:
        return self.at == len(self.program) and self.awaited is None and not self.pending


class Machine:
    """All ranks, run until nobody can move, or as far as `turns` says: one rank at a time."""

    def __init__(
        self,
        groups: dict[str, tuple[int, ...]],
        programs: list[list[Call]],
        turns: list[int] | None = None,
    ) -> None:
        self.groups = groups
        self.ranks = [Rank(program) for program in programs]
        if turns is not None:
            for turn in turns:
                self._move(turn % len(programs))
            return
        while any(self._move(number) for number in range(len(programs))):
            pass

    def _move(self, number: int) -> bool:
        rank = self.ranks[number]
        rank.pending = [each for each in rank.pending if not self._complete(number, each)]
        if rank.awaited is not None and rank.awaited in rank.pending:
            return False
        rank.awaited = None
        if rank.at == len(rank.program):
            rank.awaited = rank.pending[0] if rank.pending else None
            return False
        call = rank.program[rank.at]
        rank.at += 1
        issued = self._issue(rank, call)
        rank.awaited = issued if call.waited else None
        return True

    def _issue(self, rank: Rank, call: Call) -> Collective:
        two = call.peer is not None
        key = pair_key(call.group, call.op, call.peer, call.tag) if two else call.group
        rank.counts[key] += 1
        issued = Collective(
            call.group,
            rank.counts[key],
            call.op,
            NOW - 20,
            call.place,
            () if call.op == "barrier" else (call.shape,),
            "" if call.op == "barrier" else "float32",
            call.root,
            peer=call.peer,
            tag=call.tag,
        )
        rank.issued.append(issued)
        rank.pending.append(issued)
        return issued

    def _complete(self, number: int, mine: Collective) -> bool:
        if mine.peer is not None:
            other = "recv" if mine.op == "send" else "send"
            key = pair_key(mine.group, other, number, mine.tag)
            return self.ranks[mine.peer].counts[key] >= mine.seq
        return all(self._fits(member, mine) for member in self.groups[mine.group])

    def _fits(self, member: int, mine: Collective) -> bool:
        for theirs in self.ranks[member].issued:
            if theirs.peer is None and (theirs.group, theirs.seq) == (mine.group, mine.seq):
                same_size = mine.op == "all_gather" or theirs.shapes == mine.shapes
                return theirs.op == mine.op and theirs.root == mine.root and same_size
        return False

    def evidence(self) -> Evidence:
        """What the ranks would have written."""
        found = []
        for number, rank in enumerate(self.ranks):
            each = RankEvidence(number, len(self.ranks), pid=1000 + number)
            each.groups = {n: Group(n, m, "gloo", 1800.0, None) for n, m in self.groups.items()}
            each.collectives = list(rank.issued)
            if rank.ended:
                each.fate = Fate(number, 1000 + number, 0, None, NOW - 10)
            elif rank.awaited is not None:
                place = rank.awaited.place
                stack = (place, WAIT) if place else (WAIT,)
                pending, counts = tuple(rank.pending), dict(rank.counts)
                each.stuck = Stuck(
                    NOW - 4, NOW, stack, place, pending, counts, awaited=rank.awaited
                )
            found.append(each)
        return Evidence(len(self.ranks), found)


@dataclass(frozen=True)
class Program:
    """A correct program, and what each rank runs of it."""

    groups: dict[str, tuple[int, ...]]
    calls: tuple[Call, ...]
    """A send stands for the recv of its peer, too: `root` is who sends."""

    def of(self, rank: int) -> list[Call]:
        """The calls that one rank makes."""
        return [own for call in self.calls if (own := self._own(call, rank)) is not None]

    def _own(self, call: Call, rank: int) -> Call | None:
        if call.op == "send":
            if rank == call.root:
                return replace(call, root=None)
            return (
                replace(call, op="recv", peer=call.root, root=None) if rank == call.peer else None
            )
        return call if rank in self.groups[call.group] else None

    def run(self, defect: Defect | None = None, turns: list[int] | None = None) -> Machine:
        """What comes of it, with at most one defect."""
        programs = [self.of(rank) for rank in range(len(self.groups["0"]))]
        if defect is not None:
            programs[defect.rank] = [
                each for call in programs[defect.rank] for each in _spoilt(call, defect)
            ]
        return Machine(self.groups, programs, turns)


def _spoilt(call: Call, defect: Defect) -> list[Call]:
    if call.line != defect.line:
        return [call]
    match defect.kind:
        case "omit":
            return []
        case "repeat":
            return [call, call]
        case "rename":
            return [replace(call, op="barrier" if call.op != "barrier" else "all_reduce")]
        case "root":
            return [replace(call, root=(call.root or 0) + 1)]
    return [replace(call, shape=(*call.shape, 2))]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Each call is made by all members of its group, in the order of the lines."""
    world_size = draw(st.integers(2, 5))
    everyone = tuple(range(world_size))
    subsets = st.sets(st.sampled_from(everyone), min_size=2).map(lambda s: tuple(sorted(s)))
    numbered = enumerate(draw(st.lists(subsets, max_size=2)), 1)
    groups = {"0": everyone} | {str(number): members for number, members in numbered}
    calls = []
    for line in range(1, draw(st.integers(1, 9)) + 1):
        op = draw(st.sampled_from((*OPS, "send")))
        if op == "send":
            sender, receiver = draw(st.permutations(everyone))[:2]
            tag = draw(st.integers(0, 1))
            calls.append(Call(line, op, root=sender, peer=receiver, tag=tag))
            continue
        group = draw(st.sampled_from(sorted(groups)))
        root = draw(st.sampled_from(groups[group])) if op in ROOTED else None
        shape = (draw(st.integers(1, 4)),)
        calls.append(Call(line, op, group, shape, root, waited=draw(st.booleans())))
    return Program(groups, tuple(calls))


@st.composite
def spoilt_programs(draw: st.DrawFn) -> tuple[Program, Defect]:
    """A correct program, and one thing that one rank does otherwise in a collective."""
    program = draw(programs().filter(lambda p: any(c.op != "send" for c in p.calls)))
    call = draw(st.sampled_from([call for call in program.calls if call.op != "send"]))
    kinds = ["omit", "repeat", "rename"]
    kinds += ["root"] if call.root is not None else []
    kinds += ["shape"] if call.op not in ("barrier", "all_gather") else []
    rank = draw(st.sampled_from(program.groups[call.group]))
    return program, Defect(draw(st.sampled_from(kinds)), rank, call.line)
