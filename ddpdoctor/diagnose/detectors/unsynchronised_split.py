"""DDP206: each rank split the data by itself: what one validates on, another trains on."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Loader


@detector(precedence=440)
def detect(case: Case) -> Iterator[Finding]:
    """Compare what each rank holds out with what the others train on."""
    for kin in loaders.training(case.evidence):
        for held in loaders.kin(case.evidence):
            if leak := _leak(kin, held):
                case.told.add("DDP206")
                yield _finding(kin, held, *leak)
                return


def _leak(kin: loaders.Kin, held: loaders.Kin) -> tuple[int, int, int] | None:
    """The rank that validates, the one that trains on the same samples, and how many of them.

    Each is compared with rank 0 alone: that is enough to see whether the splits are one.
    """
    sets = {rank: frozenset(loader.members or ()) for rank, loader in kin.items()}
    for rank, loader in held.items():
        out = frozenset(loader.members or ())
        if loader.trains or not out or out & sets[rank]:
            continue
        for other in dict.fromkeys((0, *(sets if rank == 0 else ()))):
            one_set = kin[other].identity and kin[other].identity == loader.identity
            # Shards of one set would have nothing in common.
            splits = sets[rank] & sets[other] and kin[rank].length == kin[other].length
            if other != rank and one_set and splits and (both := out & sets[other]):
                return rank, other, round(100 * len(both) / len(out))
    return None


def _finding(kin: loaders.Kin, held: loaders.Kin, rank: int, other: int, percent: int) -> Finding:
    split = kin[other].members_place
    return Finding(
        code="DDP206",
        title="unsynchronised-split",
        severity="error",
        certainty="proven",
        ranks=tuple(sorted(kin)),
        places=(
            RankPlace(ranks=tuple(sorted(kin)), place=split, doing="split the data"),
            _place(other, kin[other], "trains on one part"),
            _place(rank, held[rank], "validates on the other"),
        ),
        cause=f"each rank made a split of its own: rank {other} trains on {percent} % of the "
        f"samples that rank {rank} validates on.",
        cure=Cure(text="Split with a generator of one fixed seed on all ranks."),
        evidence=("on each rank by itself the two parts are disjoint",),
    )


def _place(rank: int, loader: Loader, doing: str) -> RankPlace:
    return RankPlace(ranks=(rank,), place=loader.place, doing=doing)
