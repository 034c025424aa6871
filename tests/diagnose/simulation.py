"""Ranks that call collectives, simulated: the truth that the prover is measured against."""

from __future__ import annotations

from dataclasses import dataclass, field

from ddpdoctor.evidence import Collective, Evidence, Fate, Group, Place, RankEvidence, Stuck

WAIT = Place("/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier")
NOW = 100.0


@dataclass(frozen=True)
class Call:
    """One collective in a rank's program."""

    group: str
    op: str = "all_reduce"


@dataclass
class Simulation:
    """Programs of all ranks, run until the given number of moves or until nobody can move."""

    groups: dict[str, tuple[int, ...]]
    programs: list[list[Call]]
    position: list[int] = field(init=False)
    issued: list[dict[str, list[str]]] = field(init=False)

    def __post_init__(self) -> None:
        self.position = [0] * len(self.programs)
        self.issued = [{} for _ in self.programs]
        for rank in range(len(self.programs)):
            self._issue(rank)

    def _issue(self, rank: int) -> None:
        if not self.ended(rank):
            call = self.programs[rank][self.position[rank]]
            self.issued[rank].setdefault(call.group, []).append(call.op)

    def ended(self, rank: int) -> bool:
        return self.position[rank] == len(self.programs[rank])

    def can_move(self, rank: int) -> bool:
        """Whether every member has issued what this rank waits in."""
        if self.ended(rank):
            return False
        call = self.programs[rank][self.position[rank]]
        seq = len(self.issued[rank][call.group])
        for member in self.groups[call.group]:
            theirs = self.issued[member].get(call.group, [])
            if len(theirs) < seq or theirs[seq - 1] != call.op:
                return False
        return True

    def move(self, rank: int) -> None:
        self.position[rank] += 1
        self._issue(rank)

    def run(self, choices: list[int]) -> None:
        """Let ranks that can move do so, in the order that `choices` says, until it is used up."""
        for choice in choices:
            movable = [rank for rank in range(len(self.programs)) if self.can_move(rank)]
            if not movable:
                return
            self.move(movable[choice % len(movable)])

    def finish(self) -> set[int]:
        """Run until nobody can move; the ranks that never reach their end."""
        while movable := [rank for rank in range(len(self.programs)) if self.can_move(rank)]:
            self.move(movable[0])
        return {rank for rank in range(len(self.programs)) if not self.ended(rank)}

    def evidence(self, running: frozenset[int] = frozenset()) -> Evidence:
        """What the ranks would have written; those `running` are seen outside any collective."""
        ranks = []
        for rank in range(len(self.programs)):
            found = RankEvidence(rank, len(self.programs), pid=1000 + rank)
            found.groups = {n: Group(n, m, "gloo", 1800.0, None) for n, m in self.groups.items()}
            if self.ended(rank):
                found.fate = Fate(rank, 1000 + rank, 0, None, NOW - 10)
                found.collectives = [
                    Collective(group, seq, op, NOW - 20)
                    for group, ops in self.issued[rank].items()
                    for seq, op in enumerate(ops, 1)
                ]
            elif rank not in running:
                found.stuck = self._stuck(rank)
            ranks.append(found)
        return Evidence(len(self.programs), ranks)

    def _stuck(self, rank: int) -> Stuck:
        call = self.programs[rank][self.position[rank]]
        issued = {group: len(ops) for group, ops in self.issued[rank].items()}
        waiting = Collective(call.group, issued[call.group], call.op, NOW - 5)
        return Stuck(NOW - 4, NOW, (WAIT,), None, (waiting,), issued)
