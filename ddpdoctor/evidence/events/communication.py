"""The collectives that Python code has issued, and on what ways."""

from __future__ import annotations

from typing import Any

from ddpdoctor.evidence.event import event, typed
from ddpdoctor.evidence.model import RankEvidence
from ddpdoctor.evidence.records import Collective, Place

_WINDOW = 8192
"""At least so many collectives are remembered, the latest; twice as many at most."""


@event("way")
def way(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """The user's frames that lead to a line, outermost first; other events speak of its number."""
    rank.ways[given["number"]] = tuple(Place(*frame) for frame in given["frames"])


@event("collective", lasts=False)
def collective(rank: RankEvidence, given: dict[str, Any], time: float) -> None:
    """Some collectives that were issued, in their order."""
    rank.collectives += (collective_of(rank, row) for row in given["rows"])
    if len(rank.collectives) > 2 * _WINDOW:
        del rank.collectives[:_WINDOW]


def collective_of(rank: RankEvidence, row: dict[str, Any]) -> Collective:
    """One row; its way is told by its number."""
    return Collective(way=rank.way(row.pop("way", None)), **typed(row))
