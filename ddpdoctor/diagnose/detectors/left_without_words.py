"""DDP400: a rank ended and raised nothing; the others lost their peer, or were ended for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, is_casualty, last_place, named
from ddpdoctor.evidence import Evidence, RankEvidence

_KEEP_WORDS = "Look for its last words (torchrun --log-dir DIR --tee 3 keeps each rank's)"
_OF_SIGNAL = 128
"""A shell, srun and mpirun end with this and the number of the signal that ended a rank."""


def detect(case: Case) -> Iterator[Finding]:
    """Name it where all that was raised is what ranks see when another one leaves."""
    victims = [*case.raised, *case.casualties]
    if case.died or not all(is_casualty(each.exception) for each in victims):
        return
    if case.deadlock is not None and not victims:
        return
    if left := [rank for rank in case.evidence.ranks if _exit_code(rank) and not rank.exceptions]:
        case.explain(*case.raised)
        yield _seen(left, victims)
    elif (first := _first_unseen(case.evidence)) and (victims or case.evidence.exit_code):
        case.explain(*case.raised)
        yield _unseen(first, case.evidence.exit_code or 0, victims)


def _exit_code(rank: RankEvidence) -> int:
    """With which a rank ended by itself; 0 if it ended well, or in another way."""
    if rank.fate is None or rank.fate.killed_by_us:
        return 0
    return rank.fate.exit_code or 0


def _seen(left: Sequence[RankEvidence], victims: Sequence[Raised]) -> Finding:
    ranks = tuple(rank.rank for rank in left)
    codes = ", ".join(sorted({str(_exit_code(rank)) for rank in left}))
    return Finding(
        code="DDP400",
        title="left-without-words",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=tuple(_last_seen(rank, f"exit code {_exit_code(rank)}") for rank in left),
        cause=f"{named(ranks)} ended with exit code {codes} and left no traceback: by sys.exit or "
        "os._exit, or its words are lost.",
        cure=Cure(text=f"{_KEEP_WORDS}, and let it raise instead of exiting."),
        consequences=_consequences(victims),
    )


def _first_unseen(evidence: Evidence) -> RankEvidence | None:
    """Of the ranks that ended and neither said nor were seen how, the first."""
    unseen = [
        (rank.fate.time, rank.rank, rank)
        for rank in evidence.ranks
        if rank.fate is not None
        and (rank.fate.exit_code, rank.fate.signal, rank.fate.killed_by_us) == (None, None, False)
        and rank.exiting is None
        and not rank.exceptions
    ]
    return min(unseen)[2] if unseen else None


def _unseen(rank: RankEvidence, command: int, victims: Sequence[Raised]) -> Finding:
    cause = (
        f"rank {rank.rank} was the first to end, without a traceback: by a signal, or by os._exit. "
        "Its parent took its exit status away unseen"
    )
    if command:
        cause += f"; the command ended with exit code {command}"
    if command - _OF_SIGNAL in {each.value for each in signal.Signals}:
        cause += f", which stands for {signal.Signals(command - _OF_SIGNAL).name}"
    return Finding(
        code="DDP400",
        title="left-without-words",
        severity="error",
        certainty="evidence",
        ranks=(rank.rank,),
        places=(_last_seen(rank, "ended"),),
        cause=f"{cause}.",
        cure=Cure(
            text=f"{_KEEP_WORDS}, and in dmesg for a kernel that was out of memory; let ranks "
            "raise instead of exiting."
        ),
        consequences=_consequences(victims),
    )


def _last_seen(rank: RankEvidence, ended: str) -> RankPlace:
    place = last_place(rank)
    doing = f"{ended}; last seen here" if place is not None else "has ended"
    return RankPlace(ranks=(rank.rank,), place=place, doing=doing)


def _consequences(victims: Sequence[Raised]) -> tuple[str, ...]:
    return tuple(
        f"rank {each.rank.rank} then raised {each.exception.type}"
        + (f" at {each.exception.place}" if each.exception.place else "")
        for each in victims
    )
