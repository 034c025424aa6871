"""DDP400: a rank was asked to end by a signal, and all that the others raised is its loss."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding
from ddpdoctor.diagnose.case import ASKED_TO_END, Case, Died, is_casualty, last_seen
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import RankEvidence, named

_TO_NOTICE = 1.0
"""Seconds by which the clocks of two hosts may be taken to differ, and an end be seen late."""


@detector(precedence=307)
def detect(case: Case) -> Iterator[Finding]:
    """Where the ranks were then started again, it was the launcher, and nothing is wrong."""
    victims = [*case.raised, *case.casualties]
    if not victims or any(
        isinstance(each, Died) or not is_casualty(each.exception) for each in case.failures
    ):
        return
    lost = {each.rank.rank for each in victims}
    first = min(each.exception.time for each in victims)
    asked = [
        rank
        for rank in case.evidence.ranks
        if rank.rank not in lost
        and _was_asked(rank)
        and _end(rank) < first + _TO_NOTICE
        and not any(_had_ended(each.rank, rank) for each in victims)
    ]
    if not asked or case.evidence.asked_to_end:
        return
    case.explain(*case.raised)
    numbers = tuple(rank.rank for rank in asked)
    names = ", ".join(sorted({signal.Signals(_signal(rank)).name for rank in asked}))
    cause = f"{named(numbers)} {'was' if len(numbers) == 1 else 'were'} asked to end, by {names}"
    if case.evidence.restarted:
        text = "Nothing, if hosts were to come or go."
        cause += "; then the launcher started the ranks again."
    else:
        text = "Look who asks: a scheduler that takes a host back, a person, or another launcher."
        cause += ", and the others could not go on."
    yield Finding(
        code="DDP400",
        title="asked-to-end",
        severity="info" if case.evidence.restarted else "error",
        certainty="proven",
        ranks=numbers,
        places=tuple(last_seen(rank, f"ended by {names}; last seen here") for rank in asked),
        cause=cause,
        cure=Cure(text=text),
        consequences=tuple(
            f"rank {each.rank.rank} then raised {each.exception.type}"
            + (f" at {each.exception.place}" if each.exception.place else "")
            for each in victims
        ),
    )


def _was_asked(rank: RankEvidence) -> bool:
    return _signal(rank) in ASKED_TO_END and not (rank.fate and rank.fate.killed_by_us)


def _signal(rank: RankEvidence) -> int:
    return (rank.fate.signal or 0) if rank.fate is not None else 0


def _had_ended(victim: RankEvidence, rank: RankEvidence) -> bool:
    """Whether it ended before, on the same host: then their launcher may have ended the other."""
    return victim.host == rank.host and 0.0 < _end(victim) < _end(rank)


def _end(rank: RankEvidence) -> float:
    return rank.fate.time if rank.fate is not None else 0.0
