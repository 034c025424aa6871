"""DDP421: a sum over the ranks of what is the same on all of them already.

Proven: at several calls of one line, the inputs were equal to the bit on all ranks, and changed
from call to call. A sum then is the value times the number of ranks: a gradient norm that backward
has reduced already, a metric that was reduced before. Counts, which are whole numbers, may be alike
by chance and are left out; beside a count the finding is a note, as their quotient is right.
Whether the result is divided again only the source says (`annotate`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, Place

_ENOUGH = 3


@detector(precedence=428)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line whose inputs never differed."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2 or any(e.code == "DDP202" and e.certainty == "proven" for e in case.found):
        return  # who do the same work have the same numbers
    calls: dict[tuple[str, tuple[int, ...], int], dict[int, Collective]] = {}
    for rank in ranks:
        for call in rank.collectives:
            if call.content and call.reduce_op == "SUM" and call.group in rank.groups:
                members = rank.groups[call.group].ranks
                calls.setdefault((call.group, members, call.seq), {})[rank.rank] = call
    alike: dict[Place, set[str]] = {}
    unlike: set[Place] = set()
    by: dict[Place, Collective] = {}
    for (_, members, _), of in calls.items():
        place = next(iter(of.values())).place
        if place is None or len(of) < len(members) or len(members) < 2:
            continue
        if any(call.gradient for call in of.values()):
            unlike.add(place)  # by hand: that gradients are alike is DDP202
        if len({call.content for call in of.values()}) > 1:
            unlike.add(place)
        elif len({call.place for call in of.values()}) == 1:
            alike.setdefault(place, set()).add(next(iter(of.values())).content)
            by[place] = next(iter(of.values()))
    numbers = tuple(rank.rank for rank in ranks)
    for place, values in alike.items():
        if place in unlike or len(values) < _ENOUGH:
            continue
        call = by[place]
        yield Finding(
            code="DDP421",
            title="reduced-twice",
            severity="info" if call.counted else "warning",
            certainty="proven",
            ranks=numbers,
            places=(
                RankPlace(ranks=numbers, place=place, doing=f"{call.op}(SUM) of equal values"),
                *callers(numbers, call.way, place),
            ),
            cause=f"{call.op} at {place} adds up what is the same on all ranks already: at "
            f"{len(values)} calls the inputs were equal to the bit, so the sum is "
            f"{len(numbers)} times the value.",
            cure=Cure(text="Leave the reduction out, or divide by the number of ranks."),
        )
