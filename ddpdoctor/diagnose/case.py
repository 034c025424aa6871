"""The incidents of a launch: what ended which rank, told apart from what only followed from it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ddpdoctor.catalog import Finding, Phase, RankPlace
from ddpdoctor.diagnose.proof import prove_deadlock
from ddpdoctor.diagnose.waiting import Blocked, Deadlock
from ddpdoctor.evidence import Evidence, ExceptionRecord, Place, RankEvidence, Stuck, named

_CASUALTY = re.compile(
    r"Connection (closed|reset) by|Broken pipe|Socket closed|Connection refused|Connection timeout|"
    r"Application timeout caused pair closure|failed to recv, got 0 bytes|remote process exited|"
    r"NCCL communicator was aborted|successfully reached monitoredBarrier|"
    r"failed to pass monitoredBarrier|Pair is not connected|Socket Timeout|"
    r"wait timeout after \d+ms|Timed out after \d+ seconds waiting for clients",
    re.IGNORECASE,  # of one message torch's versions write some with a capital, some without
)
_TIMEOUT = re.compile(r"Timed out waiting \d+ms for|Watchdog caught collective operation timeout")
_PYTHONS_OWN = "[Errno 32] Broken pipe"
"""What Python says of a pipe, as of the output that nobody reads any more; torch's words differ."""
_PARTS: dict[str, Phase] = {
    "DistributedDataParallel.forward": "forward",
    "_engine_run_backward": "backward",
}
_CALLERS = 3
"""Of the lines that lead to a place so many are told."""
ASKED_TO_END = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals by which a process is asked to end: whoever gets one is not what went wrong."""
INTERRUPTIONS = frozenset({"KeyboardInterrupt", "SignalException"})
"""What Python makes of such a signal, and what elastic does, also in ranks that it has forked."""
_TEARDOWN = 1.0
"""Seconds that a rank takes to end after its peers have lost it."""
_LAUNCHERS_PATIENCE = 5.0
"""Seconds after a failure from which on a SIGKILL is taken for the launcher's."""


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
        self.proven = prove_deadlock(evidence)
        """The deadlock, whoever has explained it."""
        self.deadlock: Deadlock | None = self.proven
        raised = [
            Raised(rank, ending)
            for rank in evidence.ranks
            if (rank.exceptions or rank.thrown) and (ending := _failed(rank) or _lost_a_peer(rank))
        ]
        self.raised = [each for each in raised if not is_casualty(each.exception)]
        self.casualties = [each for each in raised if is_casualty(each.exception)]
        self.died = _died(evidence, self.raised)
        self.deserters = self._deserters()
        """Ranks that ended well while others still wanted to communicate with them."""
        self.found: list[Finding] = []
        """By the detectors that have looked already."""
        self.told: set[str] = set()
        """Codes of findings that explain what other detectors would find too."""
        self._waited: list[str] = []
        if not (self.raised or self.died or self.deserters or self.overdue):
            own = [each for each in self.casualties if _PYTHONS_OWN in each.exception.message]
            self.raised = own or self.casualties
            self.casualties = [each for each in self.casualties if each not in self.raised]
        self.failures: tuple[Raised | Died, ...] = (*self.raised, *self.died)
        """What ended ranks, whoever has explained it."""

    @property
    def overdue(self) -> list[Raised]:
        """The ranks whose collective was given up for its timeout."""
        return [each for each in self.casualties if _TIMEOUT.search(each.exception.message)]

    @cached_property
    def ended_well(self) -> bool:
        """Whether nothing louder happened: then what is silent may be told."""
        for rank in self.evidence.ranks:
            if any(e.type not in {*INTERRUPTIONS, "SystemExit"} for e in rank.exceptions):
                return False
            fate = rank.fate
            if fate is None:
                continue
            done = rank.left is not None or rank.exiting is not None
            if fate.exit_code or (fate.killed_by_us and not done):
                return False
            if fate.signal not in (None, signal.SIGINT, signal.SIGABRT):
                return False
        return self.proven is None

    @cached_property
    def is_cut_short(self) -> bool:
        """Whether a rank may have done what is not in its log."""
        return self.evidence.is_cut_short or self.evidence.behind

    def explain(self, *incidents: Raised | Died | Deadlock) -> None:
        """Take incidents off the list of what is still to be explained, and what followed."""
        explained = {id(each) for each in incidents}
        self.raised = [each for each in self.raised if id(each) not in explained]
        self.died = [each for each in self.died if id(each) not in explained]
        ended = {each.rank.rank for each in incidents if not isinstance(each, Deadlock)}
        if self.deadlock is None:
            return
        if self.deadlock in incidents:
            self.deadlock = None
        elif ended & ({b.rank for b in self.deadlock.blocked} | {*self.deadlock.gone}):
            self._waited = [
                f"{named(side.ranks)} then waited for ever in {side.doing}"
                + (f" at {side.place}" if side.place else "")
                for side in sides(b for b in self.deadlock.blocked if b.rank not in ended)
            ]
            self.deadlock = None

    def consequences(self) -> tuple[str, ...]:
        """One line for each rank that suffered what others caused."""
        raised = (
            f"rank {each.rank.rank} then raised {each.exception.type}: "
            f"{first_line(each.exception.message, 400)}"
            for each in self.casualties
        )
        return (*raised, *self._waited)

    def _deserters(self) -> list[RankEvidence]:
        """By what their peers say: the connection was closed, and this rank had ended before."""
        closed = [each for each in self.casualties if each not in self.overdue]
        if self.raised or self.died or not closed:
            return []
        first = min(each.exception.time for each in closed)
        lost = [each.rank for each in closed]
        return [
            rank
            for rank in self.evidence.ranks
            if rank not in lost
            and rank.fate is not None
            and rank.fate.exit_code == 0
            and _ended(rank) < first + _TEARDOWN
        ]


def _ended(rank: RankEvidence) -> float:
    """When it ended, by what is known first; 0 by a log without times."""
    known = (rank.left, rank.exiting, rank.fate.time if rank.fate is not None else None)
    return min(filter(None, known), default=0.0)


def _failed(rank: RankEvidence) -> ExceptionRecord | None:
    """The exception that ended it, by itself: argparse's may have been caught."""
    ending = rank.ending
    if ending is None or ending.type in INTERRUPTIONS:
        return None
    ended_well = rank.fate is not None and rank.fate.exit_code == 0
    if ending.type == "SystemExit" and (ended_well or ending.out_of == "exit"):
        return None
    return ending


def _lost_a_peer(rank: RankEvidence) -> ExceptionRecord | None:
    """What it caught in a step of its training when others had left, and ended well without them.

    A job that then joins anew means to go on with fewer.
    """
    if rank.fate is None or rank.fate.exit_code != 0:
        return None
    in_a_step = (each for each in rank.thrown if each.out_of in ("forward", "backward", "DDP"))
    lost = next((each for each in in_a_step if is_casualty(each)), None)
    joined_anew = lost is not None and (rank.joining or 0.0) > lost.time
    return None if joined_anew else lost


def _died(evidence: Evidence, raised: list[Raised]) -> list[Died]:
    """The ranks that a signal ended, but for those that it ended because of another failure."""
    failures = [(each.rank.rank, each.exception.time) for each in raised]
    found = []
    for rank in evidence.ranks:
        fate = rank.fate
        if fate is None or not fate.signal or fate.killed_by_us or fate.signal in ASKED_TO_END:
            continue
        found.append(Died(rank, fate.signal))
        failures.append((rank.rank, fate.time))
    return [each for each in found if not _followed(each, failures)]


def _followed(died: Died, failures: list[tuple[int, float]]) -> bool:
    """Whether this death came of another rank's failure."""
    assert died.rank.fate is not None
    grace = {int(signal.SIGABRT): 0.0, int(signal.SIGKILL): _LAUNCHERS_PATIENCE}.get(died.signal)
    return grace is not None and any(
        rank != died.rank.rank and time + grace < died.rank.fate.time for rank, time in failures
    )


def is_casualty(exception: ExceptionRecord) -> bool:
    """Whether this is what a rank sees when another one leaves."""
    return bool(_CASUALTY.search(exception.message) or _TIMEOUT.search(exception.message))


def first_line(message: str, limit: int = 120) -> str:
    """The first line of a message, shortened."""
    line = message.strip().splitlines()[0] if message.strip() else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def sides(blocked: Iterable[Blocked]) -> list[RankPlace]:
    """The ranks that wait, together where they wait for the same at the same line; fewest first."""
    together: dict[tuple[str, int, Place | None], list[Blocked]] = {}
    parties: dict[tuple[int, ...], list[Blocked]] = {}
    for each in blocked:
        alike = each.stuck.alike
        if alike not in parties:
            where = (_doing(each), each.collective.seq, each.stuck.place)
            parties[alike] = together.setdefault(where, [])
        parties[alike].append(each)
    return [
        RankPlace(
            ranks=tuple(each.rank for each in side),
            place=place,
            doing=doing,
            waits_for=side[0].waits_for,
            phase=_phase(side[0]),
            stack=way(side[0].stuck),
        )
        for (doing, _, place), side in sorted(together.items(), key=lambda item: len(item[1]))
    ]


def _doing(blocked: Blocked) -> str:
    """The words for what a rank waits in, as in "all_reduce #413 (backward)"."""
    collective, phase = blocked.collective, _phase(blocked)
    return f"{collective.op} #{collective.seq}" + (f" ({phase})" if phase else "")


def _phase(blocked: Blocked) -> Phase:
    """The part of a step that a rank waits in by DDP's doing."""
    stack = blocked.stuck.stack
    below = stack[len(way(blocked.stuck)) :]
    # What the user's own line calls is not DDP's doing, though it stands in a forward; what a layer
    # calls is, as no such line asks for it.
    inside = {
        part
        for frame in (stack if any("/torch/nn/" in each.file for each in below) else below)
        for function, part in _PARTS.items()
        if frame.function.endswith(function) and "/torch/" in frame.file
    }
    return inside.pop() if len(inside) == 1 else ""


def last_seen(rank: RankEvidence, doing: str) -> RankPlace:
    """Where a rank that has ended was last seen, and the words for it, as far as that is known."""
    seen = rank.stuck or rank.working
    place, when = (seen.place, seen.seen) if seen is not None else (None, 0.0)
    for call in rank.collectives[-1:]:
        if call.begun > when and call.place is not None:
            place, when = call.place, call.begun
    for thrown in rank.thrown[-1:]:
        if thrown.time > when and thrown.place is not None:
            place = thrown.place
    return RankPlace(
        ranks=(rank.rank,), place=place, doing=doing if place is not None else "has ended"
    )


def way(stuck: Stuck) -> tuple[Place, ...]:
    """The stack down to the innermost line that is the user's own."""
    frames = stuck.stack
    end = max((n for n, frame in enumerate(frames, 1) if frame == stuck.place), default=0)
    return frames[:end]


def callers(ranks: tuple[int, ...], way: tuple[Place, ...], place: Place | None) -> list[RankPlace]:
    """The nearest of the user's lines on the way to a place, innermost first."""
    outer = [frame for frame in reversed(way) if frame != place]
    return [RankPlace(ranks=ranks, place=each, doing="calls it") for each in outer[:_CALLERS]]
