"""DDP408: new_group is called by its members only, or with other members on every rank."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import MAKING_GROUPS, Collective, named


@detector(precedence=320, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Compare the groups that the ranks made, number by number; the first that differs.

    Where all ended well, one that some did not make has done no harm yet: the next one would.
    """
    made: dict[int, dict[int, Collective]] = {}
    for rank in case.evidence.ranks:
        for call in rank.collectives:
            if call.group == MAKING_GROUPS:
                made.setdefault(call.seq, {})[rank.rank] = call
    waiting = case.deadlock.blocked if case.deadlock is not None else ()
    alone = {each.rank for each in waiting if each.collective.group == MAKING_GROUPS}
    for _, calls in sorted(made.items()):
        differ = len({call.shapes for call in calls.values()}) > 1
        some = len(calls) < len(case.evidence.ranks)
        if differ or (some and (alone & {*calls} or case.ended_well)):
            yield _finding(case, calls)
            return


def _finding(case: Case, calls: dict[int, Collective]) -> Finding:
    if case.deadlock is not None:
        case.explain(case.deadlock)
    case.explain(*case.raised)
    forms: dict[Collective, list[int]] = {}
    for rank, call in calls.items():
        alike = next((c for c in forms if (c.shapes, c.place) == (call.shapes, call.place)), call)
        forms.setdefault(alike, []).append(rank)
    missing = [rank.rank for rank in case.evidence.ranks if rank.rank not in calls]
    ways = [f"{named(ranks)} of {list(call.shapes[0])}" for call, ranks in forms.items()]
    ways += [f"{named(missing)} of none"] if missing else []
    return Finding(
        code="DDP408",
        title="partial-new-group",
        severity="warning" if case.ended_well else "error",
        certainty="proven",
        ranks=(),
        places=tuple(
            RankPlace(
                ranks=tuple(ranks), place=call.place, doing=f"new_group({list(call.shapes[0])})"
            )
            for call, ranks in forms.items()
        ),
        cause="every rank has to make every group, in the same order, and as their group number "
        f"{next(iter(calls.values())).seq} the ranks made different ones: {'; '.join(ways)}.",
        cure=Cure(text="Call new_group on every rank for every group, members or not."),
        consequences=case.consequences(),
    )
