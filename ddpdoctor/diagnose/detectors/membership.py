"""DDP105, DDP111, DDP115: who joined the process group, who could not, and who never tried."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, named
from ddpdoctor.evidence import Place, RankEvidence


def detect(case: Case) -> Iterator[Finding]:
    """Only where no failure says more than that the wait for the others was given up."""
    gave_up = [each for each in case.raised if _gave_up(each)]
    if len(gave_up) < len(case.failures) or case.proven is not None:
        return
    ranks = [rank for rank in case.evidence.ranks if rank.pid]
    tried = [rank for rank in ranks if rank.joining is not None and not rank.groups]
    missing = [rank.rank for rank in case.evidence.ranks if rank.joining is None]
    ended_well = [r for r in ranks if r.fate is not None and r.fate.exit_code == 0]
    if tried and missing and not any(rank in ended_well for rank in tried):
        case.explain(*gave_up)
        yield _incomplete(case, tried, missing)
    elif swallowed := [rank for rank in tried if rank in ended_well and rank.world_size > 1]:
        yield _swallowed(swallowed)
    elif len(ranks) > 1 and all(_trained_alone(rank) for rank in ranks):
        yield _lone(ranks)


def _gave_up(raised: Raised) -> bool:
    return raised.exception.type == "DistStoreError" and not raised.rank.groups


def _incomplete(case: Case, tried: list[RankEvidence], missing: list[int]) -> Finding:
    ranks = tuple(rank.rank for rank in tried)
    world = case.evidence.world_size
    return Finding(
        code="DDP105",
        title="wrong-world-size",
        severity="error",
        certainty="evidence",
        ranks=tuple(missing),
        places=(_place(ranks, tried, "waits in init_process_group"),),
        cause=f"{len(tried)} of {world} ranks came to init_process_group: {named(missing)} did "
        "not, and the others wait for it.",
        cure=Cure(text="Start as many processes as the world size says, through one launcher."),
    )


def _swallowed(ranks: list[RankEvidence]) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    return Finding(
        code="DDP111",
        title="swallowed-init-failure",
        severity="error",
        certainty="proven",
        ranks=numbers,
        places=(_place(numbers, ranks, "failed to join, and went on alone"),),
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


def _place(numbers: tuple[int, ...], ranks: list[RankEvidence], doing: str) -> RankPlace:
    stuck = ranks[0].stuck
    place = ranks[0].joining_place or (stuck.place if stuck is not None else None)
    return RankPlace(ranks=numbers, place=place, doing=doing)
