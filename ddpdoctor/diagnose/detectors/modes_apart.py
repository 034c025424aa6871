"""DDP300: a rank trains parts of the model in evaluation mode that others train in training mode.

Proven: before two steps or more, the same modules were in evaluation mode on some ranks and not on
others. Their dropout is off, and their batch norms neither use nor take in the batch: the ranks
compute different functions, of whose gradients DDP takes the mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import Replica, groups
from ddpdoctor.evidence import named

_ENOUGH = 2


@detector(precedence=407)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first such model."""
    if not case.ended_well:
        return
    for _, replicas in groups(case):
        first, *others = replicas
        common = set(first.samples).intersection(*(each.samples for each in others))
        # What is sampled after the last step is of after the training.
        taken = min(each.training.steps for each in replicas)
        steps = sorted(step for step in common if step <= taken)
        apart = [step for step in steps if len({_resting(each, step) for each in replicas}) > 1]
        if len(apart) < _ENOUGH:
            continue
        at = [_resting(each, apart[-1]) for each in replicas]
        alike = at[0].intersection(*at)
        names = sorted(at[0].union(*at) - alike)
        ranks = tuple(each.rank.rank for each, of in zip(replicas, at, strict=True) if of - alike)
        # The line by which one of these ranks came into that mode the last time.
        theirs = next(each.training.places for each in replicas if each.rank.rank in ranks)
        lines = [(theirs["rest"], "puts it into evaluation mode")] if "rest" in theirs else []
        places = replicas[0].training.places
        lines += [(places[n], n) for n in ("forward", "step") if n in places]
        yield Finding(
            code="DDP300",
            title="silent-divergence",
            severity="warning",
            certainty="proven",
            ranks=ranks,
            places=tuple(RankPlace(ranks=ranks, place=place, doing=n) for place, n in lines),
            cause=f"{named(ranks)} train {listed(tuple(names))} in evaluation mode, and the others "
            f"in training mode (before steps {', '.join(map(str, apart))}).",
            cure=Cure(text="Call model.train() on every rank, and on every way out of evaluation."),
        )
        return


def _resting(replica: Replica, step: int) -> frozenset[str]:
    """Which modules those are: a model that is put together from sets has them in any order."""
    return frozenset(replica.samples[step].resting)
