"""DDP211: a mean is divided or multiplied by the number of ranks, and gradients are averaged too.

Seen, where each step has one backward pass: at each loss that was looked at, every mean over the
rank's own samples is multiplied by the number of ranks, or divided by it, before it goes backward;
and the gradients of all ranks are averaged after that, by DDP or by hand. Where other terms than
means are in it, all of it is divided in the end, at each loss. A weight of the loss can be the same
number: it is a note, which `annotate` makes a warning where the source says whence it comes. Where
each loss that was divided came after a sum over the ranks of one number with a graph, that is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import prod

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.by_hand import looks_of
from ddpdoctor.diagnose.detectors.summed_gradients import factor_of
from ddpdoctor.evidence import Place, RankEvidence, named
from ddpdoctor.evidence.events.by_hand import ByHand
from ddpdoctor.evidence.events.losses import Loss

_ENOUGH = 3


@detector(precedence=431)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first line that goes backward."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    world = len(ranks)
    if world < 2 or not case.ended_well:
        return
    by_hand = not any(rank.wrappers for rank in ranks)
    if not (_are_averaged_by_hand(ranks) if by_hand else _are_averaged(ranks)):
        return
    seen = [each for rank in ranks for each in rank.of(Loss)]
    places = {each.place for each in seen}
    if min(len(rank.of(Loss)) for rank in ranks) < _ENOUGH or len(places) > 1:
        return
    factors = {factor for each in seen for factor in each.factors or (each.whole,)}
    if not all(each.factors for each in seen):
        if math.isclose(max(factors) * world, 1.0) and math.isclose(min(factors), max(factors)):
            yield _finding(ranks, places.pop(), divided=True, by_hand=by_hand, whole=True)
        return
    divided = all(math.isclose(each * world, 1.0) for each in factors)
    if divided or all(math.isclose(each, world) for each in factors):
        yield _finding(ranks, places.pop(), divided=divided, by_hand=by_hand)


def _finding(
    ranks: list[RankEvidence],
    place: Place | None,
    *,
    divided: bool,
    by_hand: bool,
    whole: bool = False,
) -> Finding:
    numbers, world = tuple(rank.rank for rank in ranks), len(ranks)
    how, long = ("divided", f"1/{world} of") if divided else ("multiplied", f"{world} times")
    loss, of = "mean loss", "that of one process with all the samples"
    if whole:
        loss, of = "loss", "the average of what the ranks would have without that"
    who = "the ranks average their gradients" if by_hand else "DDP averages the gradients"
    return Finding(
        code="DDP211",
        title="averaged-twice" if whole or (by_hand and divided) else "batch-size-meaning",
        severity="info",
        certainty="evidence",
        is_suspicion=True,
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=place, doing="goes backward"),
            *(_summed_before(ranks) if divided else ()),
        ),
        cause=f"the {loss} of each of {named(numbers)} is {how} by {world} before it goes "
        f"backward, and {who} too: the gradient is {long} {of}.",
        cure=Cure(text="Leave the mean as it is: the average is over the ranks already."),
    )


def _summed_before(ranks: list[RankEvidence]) -> Iterator[RankPlace]:
    """The line that adds up one number with its graph before each of the first losses."""
    lines: list[set[Place | None]] = []
    for rank in ranks:
        calls = [
            call
            for call in rank.collectives
            if call.op in ("all_reduce", "reduce")
            and call.graph
            and all(prod(s) == 1 for s in call.shapes)
        ]
        since = 0.0
        for loss in rank.of(Loss)[:_ENOUGH]:
            lines.append({call.place for call in calls if since < call.begun < loss.time})
            since = loss.time
    numbers = tuple(rank.rank for rank in ranks)
    for place in set.intersection(*lines) - {None}:
        yield RankPlace(ranks=numbers, place=place, doing="sums it over the ranks, with its graph")


def _are_averaged(ranks: list[RankEvidence]) -> bool:
    """Whether DDPs of all ranks have reduced the one pass of every step that was seen."""
    trainings = [each for rank in ranks for each in rank.training.values()]
    windows = {window for each in trainings for window in each.windows}
    whole = all(len(each.ranks) in (0, len(ranks)) for rank in ranks for each in rank.wrappers)
    return whole and not any(each.kept_out for each in trainings) and windows == {"s"}


def _are_averaged_by_hand(ranks: list[RankEvidence]) -> bool:
    """Whether, of each optimizer, one pass for each step was averaged over all ranks."""
    optimizers = {each.optimizer for rank in ranks for each in rank.of(ByHand)}
    for optimizer in optimizers:
        looks = [look for look in looks_of(ranks, optimizer) if all(each.left for each in look)]
        by = factor_of(looks)
        if by is None or not math.isclose(by * len(ranks), 1.0, rel_tol=1e-4):
            return False
        if any(each.passes != 1 or each.talked for look in looks for each in look):
            return False
    return bool(optimizers)
