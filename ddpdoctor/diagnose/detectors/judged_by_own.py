"""DDP312: the ranks evaluate one model, each with running statistics of its own, and sum that up.

Seen, of a DDP that sends no buffers: whenever it went back to training from an evaluation its batch
norms held something else on each rank; and within each of these evaluations a line of the user's
own reduced a few numbers over all ranks. What is reduced is then of as many models as there are
ranks, and what is saved is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing, is_a_replica
from ddpdoctor.evidence import Collective, RankEvidence, named
from ddpdoctor.evidence.events.rested import Rested

_REDUCED = ("all_reduce", "reduce")
_METRIC = 64
"""Elements, up to which what is reduced is a metric."""


@detector(precedence=476)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each wrapper."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2 or not all(map(is_a_replica, ranks)) or not case.ended_well:
        return
    for number in sorted({each.wrapper for each in ranks[0].of(Rested)}):
        of = [[each for each in rank.of(Rested) if each.wrapper == number] for rank in ranks]
        looks = list(zip(*of, strict=False))
        apart = [differing([each.digests for each in look]) for look in looks]
        reduced = [_reduced(ranks[0], look[0]) for look in looks]
        if not looks or not all(apart) or not all(reduced):
            continue
        numbers, summed = tuple(rank.rank for rank in ranks), reduced[0]
        assert summed is not None
        wrapped = ranks[0].wrappers[number].place
        yield Finding(
            code="DDP312",
            title="evaluated-with-own-statistics",
            severity="warning",
            certainty="evidence",
            ranks=numbers,
            places=(
                RankPlace(ranks=numbers, place=summed.place, doing=f"{summed.op} of the metric"),
                RankPlace(ranks=numbers, place=looks[0][0].place, doing="goes back to training"),
                RankPlace(ranks=numbers, place=wrapped, doing="wrapped the model"),
            ),
            cause=f"{listed(apart[0])} held something else on each of {named(numbers)} in "
            f"{'the' if len(looks) == 1 else 'each'} evaluation that was looked at, as DDP sends "
            "no buffers: what is reduced there is of no model that anybody has.",
            cure=Cure(
                text="Average the running statistics over the ranks before the evaluation, or use "
                "SyncBatchNorm."
            ),
        )


def _reduced(rank: RankEvidence, look: Rested) -> Collective | None:
    """What a line of the user's own reduced in the evaluation."""
    within = (call for call in rank.collectives if look.since < call.begun < look.time)
    return next(
        (
            call
            for call in within
            if call.op in _REDUCED
            and call.place is not None
            and sum(map(prod, call.shapes)) <= _METRIC
        ),
        None,
    )
