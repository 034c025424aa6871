"""DDP309: a sum is divided by the count of all ranks, and DDP divides by their number once more.

Seen: at three steps or more, one line divided by what the ranks' own counts add up to, which were
summed up in that step, and what it gave went into the loss as it is, without a factor of as many as
there are ranks. Of a number that is the same at each step nothing is said: it may be a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.replicas import is_a_replica
from ddpdoctor.evidence import Place, RankEvidence, named
from ddpdoctor.evidence.events.shares import Share

_ENOUGH = 3


@detector(precedence=437)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first such line."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2 or not case.ended_well or not all(map(is_a_replica, ranks)):
        return
    if any(each.kept_out for rank in ranks for each in rank.training.values()):
        return
    counts: dict[Place, list[float]] = {}
    for shares in _together(ranks):
        if _is_of_all(shares):
            counts.setdefault(shares[0].place, []).append(shares[0].by)
    for place, whole in counts.items():
        if len(whole) >= _ENOUGH and len(set(whole)) > 1:
            yield _finding(tuple(rank.rank for rank in ranks), place, whole[-1])
            return


def _together(ranks: list[RankEvidence]) -> Iterator[list[Share]]:
    """The quotients of one step and line, as each rank made them."""
    by_key = [{(each.step, each.place): each for each in rank.of(Share)} for rank in ranks]
    for key in by_key[0]:
        if all(key in each for each in by_key):
            yield [each[key] for each in by_key]


def _is_of_all(shares: list[Share]) -> bool:
    """Whether all divided by the sum of something that each had given."""
    if len({each.by for each in shares}) > 1 or shares[0].by < 2:
        return False
    for call in zip_longest(*(each.sums for each in shares), fillvalue=()):
        for numbers in zip_longest(*call):
            if None not in numbers and all(numbers) and sum(numbers) == shares[0].by:
                return True
    return False


def _finding(ranks: tuple[int, ...], place: Place, count: float) -> Finding:
    return Finding(
        code="DDP309",
        title="divided-twice",
        severity="warning",
        certainty="evidence",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=place, doing="divides by the count of all ranks"),),
        cause=f"the loss is divided by {count:g}, the count of {named(ranks)} together, and DDP "
        f"divides the sum of their gradients by {len(ranks)} once more: each gradient is "
        f"{len(ranks)} times smaller than that of the same data in one process.",
        cure=Cure(text="Multiply the loss by the number of ranks."),
    )
