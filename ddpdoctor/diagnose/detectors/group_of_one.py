"""DDP300: models that are wrapped for a group of one rank each, so that nothing is ever reduced.

Seen: every rank's wrapper is the only member of its group, though the job has more ranks; what they
hold differs; and no line of the script gives other ranks more than a few numbers. Stages and shards
would be given something by each other, so these are replicas that train alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing, exchanges
from ddpdoctor.evidence import MAKING_GROUPS, RankEvidence, Sample, named

_FEW = 64
"""Elements up to which what is communicated is a metric or a flag."""


@detector(precedence=408)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first such model."""
    ranks = case.evidence.ranks
    if len(ranks) < 2 or not case.ended_well or not all(map(_is_alone, ranks)):
        return
    last = [_last(rank) for rank in ranks]
    wrappers = [rank.wrappers[0] for rank in ranks]
    if len({(each.place, each.sizes, each.parameters) for each in wrappers}) > 1 or not all(last):
        return
    if not (names := differing([each.parameters for each in last if each is not None])):
        return
    numbers = tuple(rank.rank for rank in ranks)
    yield Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=wrappers[0].place, doing="wrapped for a group of one"),
        ),
        cause=f"each of {named(numbers)} wraps its model for a process group that it is the only "
        f"member of: no gradient is shared, and {listed(names)} differ.",
        cure=Cure(
            text="Give DistributedDataParallel the group of the ranks that hold the same model and "
            "read different data (process_group=...), or none for all ranks."
        ),
    )


def _is_alone(rank: RankEvidence) -> bool:
    """Whether all that it trains is its own, and it gives others no more than a few numbers."""
    made = any(each.ranks == (rank.rank,) for each in rank.groups.values())
    alone = bool(rank.wrappers) and all(each.ranks == (rank.rank,) for each in rank.wrappers)
    own = (c for c in rank.collectives if c.place is not None and c.group != MAKING_GROUPS)
    return (
        made
        and alone
        and not exchanges(rank)
        and all(sum(map(prod, c.shapes)) <= _FEW for c in own)
    )


def _last(rank: RankEvidence) -> Sample | None:
    """What its first model held when that was last looked at."""
    samples = [each for each in rank.samples if each.wrapper == 0]
    return max(samples, key=lambda each: each.step, default=None)
