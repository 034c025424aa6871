"""DDP111, DDP115: processes that were started as ranks, and each of which believes it is alone."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, RankEvidence, named


@detector(precedence=308, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Only where nothing has failed: who went on alone did so in silence."""
    if case.failures or case.proven is not None:
        return
    ranks = [rank for rank in case.evidence.ranks if rank.pid]
    swallowed = [rank for rank in ranks if _went_on_alone(rank)]
    if swallowed:
        yield _swallowed(swallowed)
    elif len(ranks) > 1 and all(_trained_alone(rank) for rank in ranks):
        yield _lone(ranks)


def _went_on_alone(rank: RankEvidence) -> bool:
    if rank.joining is None or rank.groups or rank.world_size < 2:
        return False
    return rank.fate is not None and rank.fate.exit_code == 0


def _swallowed(ranks: list[RankEvidence]) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    stuck = ranks[0].stuck
    place = ranks[0].joining_place or (stuck.place if stuck is not None else None)
    return Finding(
        code="DDP111",
        title="swallowed-init-failure",
        severity="error",
        certainty="proven" if all(rank.steps for rank in ranks) else "evidence",
        ranks=numbers,
        places=(RankPlace(ranks=numbers, place=place, doing="failed to join, and went on alone"),),
        cause=f"init_process_group failed on {named(numbers)} and the script went on without a "
        "process group: every process believes that it is alone.",
        cure=Cure(text="Let the failure of init_process_group raise."),
    )


def _lone(ranks: list[RankEvidence]) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    first = next(place for rank in ranks if (place := _training(rank)) is not None)
    return Finding(
        code="DDP115",
        title="lone-copies",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(RankPlace(ranks=numbers, place=first, doing="trains, without a process group"),),
        cause=f"{len(ranks)} processes were started as ranks and none of them joined a process "
        "group: each trains a model of its own.",
        cure=Cure(text="Call init_process_group where RANK is set, and wrap the model in DDP."),
    )


def _trained_alone(rank: RankEvidence) -> bool:
    return (
        rank.steps > 0
        and rank.joining is None
        and not rank.groups
        and rank.world_size > 1
        and _training(rank) is not None
    )


def _training(rank: RankEvidence) -> Place | None:
    """The line that feeds the optimizer."""
    for loader in rank.loaders:
        if loader.trains:
            return next((e.place for e in loader.epochs.values() if e.place), loader.place)
    return None
