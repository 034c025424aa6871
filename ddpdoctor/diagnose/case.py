"""The incidents of a launch: what ended which rank, told apart from what only followed from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ddpdoctor.catalog import RankPlace
from ddpdoctor.diagnose.waiting import Blocked, Deadlock, prove_deadlock
from ddpdoctor.evidence import Evidence, ExceptionRecord, Place, RankEvidence

_CASUALTY = re.compile(
    r"Connection (closed|reset) by peer|Broken pipe|Socket closed|Connection refused|"
    r"remote process exited|NCCL communicator was aborted|Timed out waiting \d+ms for (recv|send)"
)


@dataclass(frozen=True, slots=True, eq=False)
class Raised:
    """The exception that ended a rank."""

    rank: RankEvidence
    exception: ExceptionRecord


@dataclass(frozen=True, slots=True, eq=False)
class Died:
    """A rank that a signal ended, not sent by the launcher."""

    rank: RankEvidence
    signal: int


class Case:
    """One launch under diagnosis.

    Detectors read the incidents that are still unexplained, and call `explain` for those they name.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.deadlock: Deadlock | None = prove_deadlock(evidence)
        raised = [Raised(rank, rank.exceptions[-1]) for rank in evidence.ranks if rank.exceptions]
        self.raised = [each for each in raised if not is_casualty(each.exception)]
        self.casualties = [each for each in raised if is_casualty(each.exception)]
        self.died = [
            Died(rank, rank.fate.signal)
            for rank in evidence.ranks
            if rank.fate is not None and rank.fate.signal and not rank.fate.killed_by_us
        ]
        if not self.raised and not self.died:
            self.raised, self.casualties = self.casualties, []

    def explain(self, *incidents: Raised | Died | Deadlock) -> None:
        """Take incidents off the list of what is still to be explained."""
        self.raised = [each for each in self.raised if each not in incidents]
        self.died = [each for each in self.died if each not in incidents]
        if self.deadlock is not None and self.deadlock in incidents:
            self.deadlock = None

    def consequences(self) -> tuple[str, ...]:
        """One line for each rank that suffered what others caused."""
        return tuple(
            f"rank {each.rank.rank} then raised {each.exception.type}: "
            f"{first_line(each.exception.message)}"
            for each in self.casualties
        )


def is_casualty(exception: ExceptionRecord) -> bool:
    """Whether this is what a rank sees when another one leaves."""
    return bool(_CASUALTY.search(exception.message))


def first_line(message: str, limit: int = 120) -> str:
    """The first line of a message, shortened."""
    line = message.strip().splitlines()[0] if message.strip() else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def sides(blocked: Iterable[Blocked]) -> list[RankPlace]:
    """The ranks that wait, together where they wait for the same at the same line; fewest first."""
    together: dict[tuple[str, int, Place | None], list[Blocked]] = {}
    for each in blocked:
        where = (each.collective.op, each.collective.seq, each.stuck.place)
        together.setdefault(where, []).append(each)
    return [
        RankPlace(
            ranks=tuple(each.rank for each in side),
            place=place,
            doing=f"{op} #{seq}",
            waits_for=side[0].waits_for,
        )
        for (op, seq, place), side in sorted(together.items(), key=lambda item: len(item[1]))
    ]
