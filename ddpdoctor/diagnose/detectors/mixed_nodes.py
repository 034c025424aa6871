"""DDP110: ranks run different versions of the script or of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePath

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import RankEvidence, named


@detector(precedence=100)
def detect(case: Case) -> Iterator[Finding]:
    """Compare with rank 0; what came of it, and what did not, is for other detectors to say."""
    if not case.evidence.ranks:
        return
    first, *others = case.evidence.ranks
    for what, version in (("torch", _torch), ("script", _script)):
        if not (mine := version(first)):
            continue
        if differ := [rank for rank in others if _is_another(version(rank), mine)]:
            yield _finding(case, what, first, differ, version)


def _torch(rank: RankEvidence) -> tuple[str, str]:
    return ("torch", rank.torch) if rank.torch else ("", "")


def _script(rank: RankEvidence) -> tuple[str, str]:
    """Its name, and what is in it: scripts of another name may differ on purpose."""
    if rank.joining_place is None or not rank.source:
        return "", ""
    return PurePath(rank.joining_place.file).name, rank.source


def _is_another(theirs: tuple[str, str], mine: tuple[str, str]) -> bool:
    return theirs[0] == mine[0] != "" and theirs[1] != mine[1]


def _finding(
    case: Case,
    what: str,
    first: RankEvidence,
    differ: list[RankEvidence],
    version: Callable[[RankEvidence], tuple[str, str]],
) -> Finding:
    ranks = tuple(rank.rank for rank in differ)
    name = version(first)[0]
    failed = case.failures or case.proven is not None
    return Finding(
        code="DDP110",
        title="mixed-nodes",
        severity="error" if failed else "warning",
        certainty="evidence",
        ranks=ranks,
        places=tuple(
            RankPlace(ranks=who, place=each.joining_place, doing=f"joins with its own {name}")
            for who, each in ((ranks, differ[0]), ((first.rank,), first))
        ),
        cause=f"{named(ranks)} {'runs' if len(ranks) == 1 else 'run'} another {name} than rank 0: "
        + ", ".join(sorted({version(rank)[1] for rank in differ}))
        + f" and not {version(first)[1]}.",
        cure=Cure(
            text="Bring all nodes to one version, and exchange a fingerprint of torch, NCCL and "
            "the script before the ranks join."
        ),
        evidence=(f"what differs: {what}",),
    )
