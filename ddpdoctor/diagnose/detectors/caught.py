"""DDP307: a rank caught an exception that its peers did not have, and went on without the step.

Proven is what was seen: the exception left the forward or the backward of one rank, that rank
communicated again, and the ranks have parted since, as they count their collectives. That a batch
is gone which a loader could not give is concluded. What was tried again is not missing: where it is
known how many forward passes the ranks have made, that rank has made fewer than another.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, first_line, is_casualty
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.parting import explain_parting, has_parted
from ddpdoctor.evidence import ExceptionRecord, RankEvidence

_STEPS = ("forward", "backward")


@detector(precedence=258)
def detect(case: Case) -> Iterator[Finding]:
    """The first exception that was caught on some ranks and not on all."""
    if not has_parted(case):
        return
    ranks = case.evidence.ranks
    made = {rank.rank: _made(rank) for rank in ranks}
    caught = {
        rank.rank: error
        for rank in ranks
        if rank.thrown and (error := _left_out(rank, _lacks(made, rank.rank)))
    }
    if not caught or len(caught) == len(ranks):
        return
    first = min(caught, key=lambda rank: caught[rank].time)
    error = caught[first]
    consequences = explain_parting(case)
    lines = [place for place in reversed(error.user) if place != error.place]
    yield Finding(
        code="DDP307",
        title="rank-local-skip",
        severity="error",
        certainty="evidence" if error.out_of == "loader" else "proven",
        ranks=tuple(sorted(caught)),
        places=(
            RankPlace(
                ranks=(first,),
                place=error.place,
                doing=f"raised {error.type}, and went on",
                stack=error.user,
            ),
            *(RankPlace(ranks=(first,), place=each, doing="calls it") for each in lines[:4]),
        ),
        cause=f"rank {first} caught {error.type} ({first_line(error.message, 80)}) on its way out "
        f"of the {error.out_of} and went on without that step; the others took it.",
        cure=Cure(text="Decide together: all_reduce a flag before the step, or contribute zeros."),
        consequences=consequences,
    )


def _made(rank: RankEvidence) -> int | None:
    """How many passes it has begun that did not fail; None where that is not known."""
    failed = sum(each.out_of in _STEPS and not is_casualty(each) for each in rank.thrown)
    return None if rank.forwards is None else rank.forwards - failed


def _lacks(made: dict[int, int | None], rank: int) -> bool | None:
    """Whether another rank has made more; None where that is not known."""
    mine = made[rank]
    others = [number for other, number in made.items() if other != rank and number is not None]
    return None if mine is None or not any(others) else mine < max(others)


def _left_out(rank: RankEvidence, lacks: bool | None) -> ExceptionRecord | None:
    """What it caught and left a step out for; a loader may have been asked again."""
    if lacks is False:
        return None
    return _caught(rank, _STEPS) or (_caught(rank, ("loader",)) if lacks else None)


def _caught(rank: RankEvidence, out_of: tuple[str, ...]) -> ExceptionRecord | None:
    """The first exception that left one of these and did not end the rank."""
    for error in rank.thrown:
        if error.out_of not in out_of or error is rank.ending or is_casualty(error):
            continue
        ended = rank.ending
        if ended is not None and (ended.type, ended.message) == (error.type, error.message):
            continue
        later = any(call.begun > error.time for call in rank.collectives[-1:])
        waits = rank.stuck is not None and rank.stuck.since > error.time
        if later or waits or rank.left is not None:
            return error
    return None
