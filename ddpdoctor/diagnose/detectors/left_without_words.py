"""DDP400: a rank ended with an exit code and raised nothing; the others only lost their peer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, is_casualty, named
from ddpdoctor.evidence import RankEvidence


def detect(case: Case) -> Iterator[Finding]:
    """Name it where all that was raised is what ranks see when another one leaves."""
    victims = [*case.raised, *case.casualties]
    if not victims or case.died or not all(is_casualty(each.exception) for each in victims):
        return
    left = [rank for rank in case.evidence.ranks if exit_code(rank) and not rank.exceptions]
    if left:
        case.explain(*case.raised)
        yield finding(left, victims)


def exit_code(rank: RankEvidence) -> int:
    """With which a rank ended by itself; 0 if it ended well, or in another way."""
    if rank.fate is None or rank.fate.killed_by_us:
        return 0
    return rank.fate.exit_code or 0


def finding(left: Sequence[RankEvidence], victims: Sequence[Raised]) -> Finding:
    """The finding about ranks that left, and those that suffered of it."""
    ranks = tuple(rank.rank for rank in left)
    codes = ", ".join(sorted({str(exit_code(rank)) for rank in left}))
    last_calls = [max(r.collectives, key=lambda c: c.begun, default=None) for r in left]
    return Finding(
        code="DDP400",
        title="left-without-words",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=tuple(
            RankPlace(
                ranks=(rank.rank,),
                place=call.place if call is not None else None,
                doing=f"exit code {exit_code(rank)}; last seen here" if call else "has ended",
            )
            for rank, call in zip(left, last_calls, strict=True)
        ),
        cause=f"{named(ranks)} ended with exit code {codes} and left no traceback: by sys.exit or "
        "os._exit, or its words are lost.",
        cure=Cure(
            text="Look for its last words (torchrun --log-dir DIR --tee 3 keeps each rank's), and "
            "let it raise instead of exiting."
        ),
        consequences=tuple(
            f"rank {each.rank.rank} then raised {each.exception.type}"
            + (f" at {each.exception.place}" if each.exception.place else "")
            for each in victims
        ),
    )
