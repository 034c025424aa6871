"""DDP211: a learning-rate schedule was made for fewer steps than the ranks make.

A rank makes as many steps in an epoch as its own loader has batches. Whoever divides the samples by
ranks and batch loses the sampler's padding and the last, smaller batch; and a schedule may count
a step for every rank, as one does that accelerate has prepared. Proven where the schedule itself
says that it is over. Else it has to count a step for every rank, and to have come to a rate of zero
while steps were still made, in which nothing is learnt. The other way round, one that was made for
as many steps as all ranks make together, and counts a rank's own, has come only a part of its way.
And a plateau scheduler that is told each metric once for every rank takes it for one that has not
improved: its patience is over too soon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Plateau, RankEvidence, Training, named
from ddpdoctor.evidence.events.planned import Schedule, ScheduleEnd

_OVER = re.compile(r"Tried to step (\d+) times\. The (?:specified|total) number of .*?is (\d+)")
_IN_SCHEDULES = "/torch/optim/lr_scheduler.py"
_SHARE = 0.1
"""Of the steps, that at least are made at a rate of zero."""
_FEW = 8
_LONG, _NEAR = 16, 0.03
"""The other way: so many steps at least, and so near to those of all ranks."""
_PARTS = {2: "half", 3: "third", 4: "quarter", 8: "eighth"}


@detector(precedence=314)
def over(case: Case) -> Iterator[Finding]:
    """The steps of a schedule have run out, and it has said so."""
    hit = [(each, match) for each in case.raised if (match := _says(each))]
    if not hit or len(case.evidence.ranks) < 2:
        return
    case.explain(*(each for each, _ in hit))
    first, match = hit[0]
    ranks = tuple(each.rank.rank for each, _ in hit)
    made = [each for each in first.rank.of(Schedule) if each.total == int(match[2])]
    yield Finding(
        code="DDP211",
        title="schedule-too-short",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            *_made(ranks, made[-1:]),
            RankPlace(ranks=ranks, place=first.exception.place, doing="steps it once more"),
        ),
        cause=f"the schedule was made for {match[2]} steps, and {named(ranks)} take more: as "
        "many as a rank's loader has batches, with the sampler's padding and a last, smaller one.",
        cure=Cure(text="Take the steps of an epoch from len(loader), the one that is iterated."),
        consequences=case.consequences(),
    )


@detector(precedence=468)
def early(case: Case) -> Iterator[Finding]:
    """It counts a step for every rank, and has come to its end long before the training."""
    world = len(case.evidence.ranks)
    if world < 2:
        return
    first = case.evidence.ranks[0]
    for training in first.training.values():
        zero = _steps_at_zero(first, training)
        if not zero:
            continue
        ranks = tuple(range(world))
        yield Finding(
            code="DDP211",
            title="schedule-too-short",
            severity="warning",
            certainty="evidence",
            ranks=ranks,
            places=(
                *_made(ranks, first.of(Schedule)),
                *(
                    RankPlace(ranks=ranks, place=place, doing="steps the optimizer")
                    for name, place in training.places.items()
                    if name == "step"
                ),
            ),
            cause=f"the learning rate is 0 for the last {zero} of {training.steps} steps: "
            f"the schedule counts {world} steps for each that is taken, one for every rank, and "
            "was made for the steps of one rank.",
            cure=Cure(
                text="Plan it for all ranks' steps (times the number of processes), or do not have "
                "it prepared: it then counts the rank's own."
            ),
        )


@detector(precedence=469)
def late(case: Case) -> Iterator[Finding]:
    """It was made for the steps of all ranks, and the training has ended in the midst of it."""
    ranks = case.evidence.ranks
    if len(ranks) < 2 or not case.ended_well:
        return
    world = len(ranks)
    for ends in zip(*(rank.of(ScheduleEnd) for rank in ranks), strict=False):
        first = ends[0]
        if any(
            (e.counted, e.steps, e.plans) != (first.counted, first.steps, first.plans) for e in ends
        ):
            continue
        plan = next((each for each in first.plans if _is_near(each, world * first.counted)), 0)
        is_own = any(_is_near(each, first.counted) for each in first.plans)
        if not plan or is_own or abs(first.counted - first.steps) > 1 or first.counted < _LONG:
            continue
        numbers = tuple(rank.rank for rank in ranks)
        yield Finding(
            code="DDP211",
            title="schedule-too-long",
            severity="warning",
            certainty="evidence",
            ranks=numbers,
            places=(
                RankPlace(ranks=numbers, place=first.place, doing="makes the schedule"),
                *callers(numbers, first.way, first.place),
            ),
            cause=f"the schedule goes by {plan} steps, and has ended after {first.counted}: as "
            f"each of {world} ranks counts its own, it has come a {_PARTS.get(world, 'part')} of "
            "its way.",
            cure=Cure(text="Plan it for a rank's own steps: len(loader) times the epochs."),
        )
        return


@detector(precedence=474)
def told_again(case: Case) -> Iterator[Finding]:
    """A plateau scheduler is told each metric as often as there are ranks."""
    ranks = case.evidence.ranks
    world = len(ranks)
    if world < 2 or not all(_is_told_often(rank.plateaus, world) for rank in ranks):
        return
    numbers = tuple(rank.rank for rank in ranks)
    place = ranks[0].plateaus[0].place
    yield Finding(
        code="DDP211",
        title="metric-told-again",
        severity="warning",
        certainty="proven",
        ranks=numbers,
        places=(RankPlace(ranks=numbers, place=place, doing="scheduler.step(metric)"),),
        cause=f"ReduceLROnPlateau is told each metric {world} times, once for every rank: told "
        "again, it has not improved, so the learning rate falls too soon.",
        cure=Cure(
            text="Do not have this scheduler prepared, or step it once for each metric "
            "(Accelerator(step_scheduler_with_optimizer=False))."
        ),
    )


def _is_told_often(calls: list[Plateau], times: int) -> bool:
    """Whether each metric was told so often, of two or more, as far as the calls are known."""
    as_often = all(call.again == ((call.number - 1) % times > 0) for call in calls)
    return as_often and max((call.number for call in calls), default=0) > times


def _is_near(plan: int, steps: int) -> bool:
    """A last batch more or less in each epoch is none."""
    return abs(plan - steps) <= max(2, _NEAR * plan)


def _says(raised: Raised) -> re.Match[str] | None:
    inside = any(frame.file.endswith(_IN_SCHEDULES) for frame in raised.exception.frames)
    return _OVER.search(raised.exception.message) if inside else None


def _made(ranks: tuple[int, ...], schedules: list[Schedule]) -> Iterator[RankPlace]:
    for each in schedules:
        yield RankPlace(ranks=ranks, place=each.place, doing="makes the schedule")
        yield from callers(ranks, each.way, each.place)[:1]


def _steps_at_zero(rank: RankEvidence, training: Training) -> int:
    """How many steps at the end were made at rates of zero alone; 0 if that is few.

    Only where the schedule had counted a step for each rank by then.
    """
    taken, world = training.still_since - 1, rank.world_size
    left = training.steps - taken
    counts_for_all = abs(training.still_counted - world * taken) <= world
    long = left >= max(_FEW, _SHARE * training.steps)
    return left if taken > 0 and counts_for_all and long else 0
