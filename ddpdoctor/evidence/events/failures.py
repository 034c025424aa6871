"""Exceptions: what ended a rank, and what passed through where a rank communicates or trains."""

from __future__ import annotations

from typing import Any

from ddpdoctor.evidence.event import event, value_of
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import ExceptionRecord, Place

_MOST = 64


@event("exception")
def exception(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """An exception that ends the rank."""
    rank.exceptions.append(exception_of(given["exception"], time))


@event("thrown")
def thrown(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """An exception on its way out of a backward, a collective, a loader: somebody may catch it."""
    rank.thrown.append(exception_of(given["exception"], time, given["out_of"]))
    del rank.thrown[:-_MOST]


def exception_of(given: dict[str, Any], time: float, out_of: str = "") -> ExceptionRecord:
    """The exception with its chain."""
    cause = given["cause"]
    return ExceptionRecord(
        type=given["type"],
        message=given["message"],
        frames=tuple(Place(*frame) for frame in given["frames"]),
        time=time,
        place=value_of("place", given["place"]),
        cause=exception_of(cause, time) if cause else None,
        out_of=out_of,
        user=tuple(Place(*frame) for frame in given.get("user", ())),
        reader=value_of("place", given.get("reader")),
    )
