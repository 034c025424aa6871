"""DDP300: the ranks evaluate one model with unlike weights, and train it with the same, or never.

Before every step that all have been looked at, the replicas were equal to the bit; and in an
evaluation after the same step they were not. So each has put weights of its own there for it, as
those of an average that not all have kept in the same way. What the ranks then add up, or choose a
checkpoint by, is of several models. Proven where they were equal before the step that came next;
and of a model that no rank trains, which DDP made equal and some ranks alone have changed since.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import Replica, differing, groups
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.altered import Altered
from ddpdoctor.evidence.events.evaluated import Evaluated


@detector(precedence=417)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first such evaluation."""
    if not case.ended_well:
        return
    for number, replicas in groups(case):
        if not _are_one(replicas):
            continue
        of = [[e for e in r.rank.of(Evaluated) if e.wrapper == number] for r in replicas]
        for together in zip(*of, strict=False):
            same = len({(each.step, each.place) for each in together}) == 1
            if same and (names := differing([each.parameters for each in together])):
                yield _finding(
                    replicas,
                    together[0],
                    names,
                    is_proven=_goes_on_equal(replicas, together[0].step),
                )
                return
    yield from _untrained(case)


def _untrained(case: Case) -> Iterator[Finding]:
    """The first model that is wrapped, that nothing trains, and that some ranks have changed."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    trained = {number for rank in ranks for number, _ in rank.training}
    for number in range(min((len(rank.wrappers) for rank in ranks), default=0)):
        together = {rank.wrappers[number].ranks for rank in ranks}
        if number in trained or together != {tuple(rank.rank for rank in ranks)}:
            continue
        by_some = _changed_by_some(ranks, number)
        of = [[each for each in rank.of(Evaluated) if each.wrapper == number] for rank in ranks]
        for passes in zip(*of, strict=False) if by_some else ():
            same = len({(each.step, each.place) for each in passes}) == 1
            if same and (names := differing([each.parameters for each in passes])):
                yield _left_behind(ranks, passes[0], names, by_some)
                return


def _changed_by_some(ranks: list[RankEvidence], number: int) -> dict[int, Altered]:
    """By rank, what changed the model there after a step; nothing if that was so on all."""
    first: dict[int, Altered] = {}
    for rank in ranks:
        for each in rank.of(Altered):
            if each.wrapper == number and each.step:
                first.setdefault(rank.rank, each)
    return first if len(first) < len(ranks) else {}


def _left_behind(
    ranks: list[RankEvidence], found: Evaluated, names: tuple[str, ...], by_some: dict[int, Altered]
) -> Finding:
    numbers, some = tuple(rank.rank for rank in ranks), tuple(sorted(by_some))
    altered, wrapped = by_some[some[0]], ranks[0].wrappers[found.wrapper].place
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="proven",
        ranks=tuple(each for each in numbers if each not in some),
        places=(
            RankPlace(ranks=some, place=altered.place, doing="changes it between steps"),
            *callers(some, altered.way, altered.place),
            RankPlace(ranks=numbers, place=found.place, doing="evaluates"),
            RankPlace(ranks=numbers, place=wrapped, doing="wrapped the model"),
        ),
        cause=f"{named(numbers)} evaluate one model with unlike weights: {listed(names)} differed "
        f"after step {found.step}. No rank trains it, and {named(some)} alone changed it between "
        "steps.",
        cure=Cure(text="Bring an average of the weights up to date on every rank, at each step."),
    )


def _are_one(replicas: tuple[Replica, ...]) -> bool:
    """Whether they were equal whenever all were looked at, the end of the training included."""
    steps = set.intersection(*({*each.samples} for each in replicas))
    if not steps or any(each.training.kept_out for each in replicas):
        return False
    return not any(differing([r.samples[step].parameters for r in replicas]) for step in steps)


def _goes_on_equal(replicas: tuple[Replica, ...], taken: int) -> bool:
    """Whether all were looked at before the next step; of one optimizer it has the next number."""
    return all(len(each.rank.training) == 1 and taken + 1 in each.samples for each in replicas)


def _finding(
    replicas: tuple[Replica, ...], found: Evaluated, names: tuple[str, ...], *, is_proven: bool
) -> Finding:
    ranks = tuple(each.rank.rank for each in replicas)
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="proven" if is_proven else "evidence",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=found.place, doing="evaluates"),
            RankPlace(ranks=ranks, place=replicas[0].wrapper.place, doing="wrapped the model"),
        ),
        cause=f"{named(ranks)} train one model, and evaluate it with unlike weights: "
        f"{listed(names)} differed after step {found.step}, and were equal in training whenever "
        "it was looked at. Something puts others there for the evaluation, on each rank its own.",
        cure=Cure(text="Bring an average of the weights up to date on every rank, at each step."),
    )
