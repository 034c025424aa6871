"""DDP307: a rank caught an exception that its peers did not have, and went on without the step.

Proven is what was seen: the exception left the forward or the backward of one rank, that rank
communicated again, and the ranks have parted since, as they count their collectives. That a batch
is gone which a loader could not give is concluded: it may have been asked for again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, first_line, is_casualty
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.parting import explain_parting, has_parted
from ddpdoctor.evidence import ExceptionRecord, RankEvidence

_STEPS = ("loader", "forward", "backward")


@detector(precedence=258)
def detect(case: Case) -> Iterator[Finding]:
    """The first exception that was caught on some ranks and not on all."""
    if not has_parted(case):
        return
    caught = {rank.rank: error for rank in case.evidence.ranks if (error := _caught(rank))}
    if not caught or len(caught) == len(case.evidence.ranks):
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


def _caught(rank: RankEvidence) -> ExceptionRecord | None:
    """The first exception that left a step and did not end the rank."""
    for error in rank.thrown:
        if error.out_of not in _STEPS or error is rank.ending or is_casualty(error):
            continue
        ended = rank.ending
        if ended is not None and (ended.type, ended.message) == (error.type, error.message):
            continue
        later = any(call.begun > error.time for call in rank.collectives[-1:])
        waits = rank.stuck is not None and rank.stuck.since > error.time
        if later or waits or rank.left is not None:
            return error
    return None
