"""DDP400: a rank ended and raised nothing; the others lost their peer, or were ended for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

from ddpdoctor.catalog import Cure, Finding
from ddpdoctor.diagnose.case import ASKED_TO_END, Case, Died, Raised, is_casualty, last_seen
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Evidence, Fate, RankEvidence, named

_KEEP_WORDS = "Look for its last words (torchrun --log-dir DIR --tee 3 keeps each rank's)"
_OF_SIGNAL = 128
"""A shell, srun and mpirun end with this and the number of the signal that ended a rank."""


@detector(precedence=305)
def detect(case: Case) -> Iterator[Finding]:
    """Name it where no rank failed but by losing a peer, or by being ended for one."""
    if any(isinstance(each, Died) or not is_casualty(each.exception) for each in case.failures):
        return
    victims = [*case.raised, *case.casualties]
    if case.deadlock is not None and not victims:
        return
    left, first = _left(case.evidence), _first_unseen(case.evidence)
    if left and (victims or _others_were_ended(case.evidence)):
        case.explain(*case.raised)
        yield finding(left, victims)
    elif first is not None and (victims or _signal_of(case.evidence.exit_code)):
        case.explain(*case.raised)
        yield _unseen(first, case.evidence.exit_code, victims)


def _left(evidence: Evidence) -> list[RankEvidence]:
    """Those that ended by themselves with an exit code and no word: the first, and its like."""
    found = [rank for rank in evidence.ranks if exit_code(rank) and _is_speechless(rank)]
    first = min(found, key=_end, default=None)
    return [rank for rank in found if first and exit_code(rank) == exit_code(first)]


def _is_speechless(rank: RankEvidence) -> bool:
    """It raised nothing; that it called sys.exit is no word of why."""
    ending = rank.ending
    return ending is None or (ending.type == "SystemExit" and ending.out_of == "exit")


def exit_code(rank: RankEvidence) -> int:
    """With which a rank ended by itself; 0 if it ended well, or was asked to end."""
    if rank.fate is None or rank.fate.killed_by_us:
        return 0
    code = rank.fate.exit_code or 0
    return 0 if code - _OF_SIGNAL in ASKED_TO_END else code


def _end(rank: RankEvidence) -> float:
    return rank.fate.time if rank.fate is not None else 0.0


def _others_were_ended(evidence: Evidence) -> bool:
    """In the midst of it: ranks that all come to an end, with an exit code, may mean it."""
    midst = [rank for rank in evidence.ranks if rank.left is None and rank.exiting is None]
    return bool(evidence.exit_code) and any(
        _is_unseen(rank) or (rank.fate is not None and rank.fate.killed_by_us) for rank in midst
    )


def finding(left: Sequence[RankEvidence], victims: Sequence[Raised]) -> Finding:
    """The finding about ranks that left, and those that suffered of it."""
    ranks = tuple(rank.rank for rank in left)
    codes = ", ".join(sorted({str(exit_code(rank)) for rank in left}))
    return Finding(
        code="DDP400",
        title="left-without-words",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=tuple(
            last_seen(rank, f"exit code {exit_code(rank)}; last seen here") for rank in left
        ),
        cause=f"{named(ranks)} ended with exit code {codes} and left no traceback: by sys.exit or "
        "os._exit, or its words are lost.",
        cure=Cure(text=f"{_KEEP_WORDS}, and let it raise instead of exiting."),
        consequences=_consequences(victims),
    )


def _first_unseen(evidence: Evidence) -> RankEvidence | None:
    """Of the ranks that ended and neither said nor were seen how, the first.

    None if another had failed before: it may have been ended for that.
    """
    unseen = [rank for rank in evidence.ranks if _is_unseen(rank)]
    first = min(unseen, key=_end, default=None)
    failed = [rank for rank in evidence.ranks if _has_failed(rank.fate)]
    if first is None or any(_end(rank) < _end(first) for rank in failed):
        return None
    return first


def _is_unseen(rank: RankEvidence) -> bool:
    if rank.fate is None or not _is_speechless(rank) or rank.exiting is not None:
        return False
    known = rank.fate.exit_code is not None or rank.fate.signal is not None
    return not known and not rank.fate.killed_by_us


def _has_failed(fate: Fate | None) -> bool:
    return fate is not None and bool(fate.exit_code or fate.signal)


def _signal_of(exit_code: int | None) -> signal.Signals | None:
    """The signal that a command's exit code tells of, unless it asks a process to end."""
    try:
        number = signal.Signals((exit_code or 0) - _OF_SIGNAL)
    except ValueError:
        return None
    return None if number in ASKED_TO_END else number


def _unseen(rank: RankEvidence, exit_code: int | None, victims: Sequence[Raised]) -> Finding:
    cause = (
        f"rank {rank.rank} ended without a traceback: by a signal, or by os._exit. Its parent took "
        "its exit status away unseen"
    )
    if number := _signal_of(exit_code):
        cause += f"; the command ended with exit code {exit_code}, which stands for {number.name}"
    return Finding(
        code="DDP400",
        title="left-without-words",
        severity="error",
        certainty="evidence",
        ranks=(rank.rank,),
        places=(last_seen(rank, "ended; last seen here"),),
        cause=f"{cause}.",
        cure=Cure(
            text=f"{_KEEP_WORDS}, and in dmesg for a kernel that was out of memory; let ranks "
            "raise instead of exiting."
        ),
        consequences=_consequences(victims),
    )


def _consequences(victims: Sequence[Raised]) -> tuple[str, ...]:
    return tuple(
        f"rank {each.rank.rank} then raised {each.exception.type}"
        + (f" at {each.exception.place}" if each.exception.place else "")
        for each in victims
    )
