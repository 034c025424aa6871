"""DDP309: a loss is divided twice by the number of passes that are added up before a step.

Seen: each step that was looked at followed as many passes, which add up their gradients; and each
loss was a mean, or a sum of such, that was divided by that number, and by it once more: by the
script, it seems, and by a library that does so by itself. Two is left alone: half of a loss may be
meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import RankEvidence
from ddpdoctor.evidence.events.losses import Loss

_ENOUGH = 3
_FEWEST = 3
"""Passes before a step."""


@detector(precedence=475)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first line that goes backward."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    passes = {_passes(rank) for rank in ranks}
    if len(ranks) < 2 or not case.ended_well or len(passes) > 1:
        return
    often = passes.pop()
    losses = [each for rank in ranks for each in rank.of(Loss)]
    if often < _FEWEST or min(len(rank.of(Loss)) for rank in ranks) < _ENOUGH:
        return
    if not all(_is_divided_twice(each, often) for each in losses):
        return
    numbers = tuple(rank.rank for rank in ranks)
    places = dict.fromkeys(each.place for each in losses)
    yield Finding(
        code="DDP309",
        title="divided-by-passes-twice",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=tuple(RankPlace(ranks=numbers, place=at, doing="goes backward") for at in places),
        cause=f"{often} passes are added up before each step, and each loss is divided by {often} "
        f"twice: the gradient is {often} times smaller than the mean of what the passes give.",
        cure=Cure(
            text="Divide once: where a library accumulates (accelerator.backward), it divides."
        ),
    )


def _passes(rank: RankEvidence) -> int:
    """How many came before each step of the rank's only optimizer; 0 where not equally many did."""
    windows = {len(window) for each in rank.training.values() for window in each.windows}
    is_one = len(rank.training) == 1 and len(windows) == 1
    return windows.pop() if is_one else 0


def _is_divided_twice(loss: Loss, by: int) -> bool:
    """Whether all means in it are: that of few samples may be a quotient by the same number."""
    factors = {round(each * by * by, 6) for each in loss.factors}
    return loss.divided.count(by) == 2 and factors == {1.0}
