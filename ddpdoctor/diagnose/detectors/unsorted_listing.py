"""DDP213: the ranks list the same files in different orders, so sample i is not one sample.

The lists were compared; that the dataset goes by their order is concluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders, shuffles
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import named


@detector(precedence=445)
def detect(case: Case) -> Iterator[Finding]:
    """Name the loaders whose samplers deal out indices of lists that differ in order."""
    for kin in loaders.kin(case.evidence):
        dealt = all(
            each.sampler is not None and each.sampler.num_replicas > 1 for each in kin.values()
        )
        if len(kin) < 2 or not dealt:
            continue
        for name in next(iter(kin.values())).listings:
            listed = {
                rank: loader.listings[name]
                for rank, loader in kin.items()
                if name in loader.listings
            }
            orders = {rank: order for rank, (order, _) in listed.items()}
            files = {each for _, each in listed.values()}
            if len(listed) < len(kin) or len(files) > 1 or len(set(orders.values())) == 1:
                continue
            made = (*shuffles.apart(case.evidence.ranks), *loaders.makers(kin))
            yield _finding(kin, made, name, orders)
            break


def _finding(
    kin: loaders.Kin, made: tuple[RankPlace, ...], name: str, orders: dict[int, str]
) -> Finding:
    usual = Counter(orders.values()).most_common(1)[0][0]
    first = next(iter(kin.values()))
    others = tuple(sorted(rank for rank, order in orders.items() if order != usual))
    attribute = f"{first.dataset}.{name}" if name else first.dataset
    return Finding(
        code="DDP213",
        title="unsorted-listing",
        severity="error",
        certainty="evidence",
        ranks=others,
        places=(*made, *loaders.places(kin, "built the loader", sampler="built the sampler")),
        cause=f"{attribute} holds the same files on all ranks, but in another order on "
        f"{named(others)}: index i is another file there, so shards overlap and files are "
        "left out.",
        cure=Cure(text="Sort the list by name on every rank before it is sampled."),
        evidence=(f"{len(set(orders.values()))} orders of one list on {len(orders)} ranks",),
    )
