"""DDP216 before it does harm: a plateau scheduler is stepped with another number on each rank.

Proven by the calls: at two of them or more the ranks gave it metrics that differ by more than
rounding. The learning rates part as soon as one rank's metric has improved and another's has not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import given_to_one, is_a_replica
from ddpdoctor.evidence import Plateau

_ENOUGH = 2
_ROUNDING = 1e-6


@detector(precedence=414)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, where the learning rates have not parted yet."""
    ranks = case.evidence.ranks
    if len(ranks) < 2 or not all(map(is_a_replica, ranks)):
        return
    if any(each.code == "DDP216" for each in case.found):
        return
    calls: dict[int, list[Plateau]] = {}
    for rank in ranks:
        for call in rank.plateaus:
            calls.setdefault(call.number, []).append(call)
    unlike = [of for of in calls.values() if len(of) == len(ranks) and not _is_one(of)]
    if len(unlike) < _ENOUGH:
        return
    numbers = tuple(rank.rank for rank in ranks)
    last = unlike[-1]
    told = ", ".join(
        f"rank {n} {call.metric:g}" for n, call in zip(numbers[:8], last, strict=False)
    )
    yield Finding(
        code="DDP216",
        title="scheduler-on-local-metric",
        severity="warning",
        certainty="proven",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=last[0].place, doing="scheduler.step(metric)"),
            *(given_to_one(ranks, last[0].place) if last[0].place is not None else ()),
        ),
        cause=f"ReduceLROnPlateau is stepped with each rank's own metric ({told}): the learning "
        "rates part as soon as the ranks do not agree on what has improved.",
        cure=Cure(text="Reduce the metric over the ranks before you step the scheduler."),
    )


def _is_one(calls: list[Plateau]) -> bool:
    """Whether all ranks gave the same number, but for rounding."""
    first = calls[0].metric
    return all(
        each.metric == first
        or math.isclose(each.metric, first, rel_tol=_ROUNDING)
        or (math.isnan(each.metric) and math.isnan(first))
        for each in calls
    )
