"""DDP300: a module that the training calls beside the DDP holds something else on each rank.

Proven: at two steps or more its parameters or buffers differed between ranks, which DDP makes equal
for what it wraps alone. Told is what never changed, as a frozen teacher, a codebook or a random
projection that each rank has drawn for itself; and by evidence what changes, where its output is
what the model is given: running statistics of a rank's own data, as it seems. A meter changes too,
and may differ. Where ranks give each other tensors, each may hold a part, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing, divergences, ended_well, exchanges, is_a_replica
from ddpdoctor.evidence import RankEvidence, named
from ddpdoctor.evidence.events.beside import Beside

_ENOUGH = 2


@detector(precedence=406)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, at the first of them."""
    ranks = [rank for rank in case.evidence.ranks if rank.wrappers]
    if len(ranks) < 2 or not all(map(is_a_replica, ranks)) or not ended_well(case):
        return
    if any(len(rank.groups) > 1 or exchanges(rank) for rank in ranks) or divergences(case):
        return
    for number in sorted({each.number for each in ranks[0].of(Beside)}):
        windows = [_windows(rank, number) for rank in ranks]
        steps = sorted(set.intersection(*map(set, windows)))
        same = {(of[step].type, of[step].place) for of in windows for step in steps}
        if len(steps) < _ENOUGH or len(same) > 1:
            continue
        unlike = [set(differing([of[step].state for of in windows])) for step in steps]
        names = tuple(name for name in windows[0][steps[0]].state if all(name in u for u in unlike))
        frozen = tuple(n for n in names if all(_is_constant(n, steps, of) for of in windows))
        feeds = all(of[step].feeds for of in windows for step in steps)
        if frozen or (names and feeds):
            yield _finding(ranks, windows[0][steps[0]], frozen or names, is_frozen=bool(frozen))
            return


def _windows(rank: RankEvidence, number: int) -> dict[int, Beside]:
    return {each.step: each for each in rank.of(Beside) if each.number == number}


def _is_constant(name: str, steps: list[int], of: dict[int, Beside]) -> bool:
    return len({of[step].state.get(name) for step in steps}) == 1


def _finding(
    ranks: list[RankEvidence], seen: Beside, names: tuple[str, ...], *, is_frozen: bool
) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    how = "does not change" if is_frozen else "goes by the data of each rank"
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="proven" if is_frozen else "evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=seen.place, doing=f"calls {seen.type}"),
            RankPlace(
                ranks=numbers, place=ranks[0].wrappers[0].place, doing="wrapped another module"
            ),
            *(_seeds(ranks) if is_frozen else ()),
        ),
        cause=f"{seen.type} is no part of a DistributedDataParallel, and {listed(names)} of it, "
        f"which {how}, {'is' if len(names) == 1 else 'are'} not the same on {named(numbers)}.",
        cure=Cure(
            text="Build it from the same seed or file on every rank, or broadcast it from rank 0."
            if is_frozen
            else "Reduce its statistics over the ranks before it takes them in."
        ),
    )


def _seeds(ranks: list[RankEvidence]) -> Iterator[RankPlace]:
    """Where each rank was seeded by itself for the first time."""
    for of in zip(*(rank.seeds for rank in ranks), strict=False):
        if len({seed.value for seed in of}) > 1 and len({seed.place for seed in of}) == 1:
            numbers = tuple(rank.rank for rank in ranks)
            yield RankPlace(ranks=numbers, place=of[0].place, doing="seeds each rank by itself")
            yield from callers(numbers, of[0].way, of[0].place)[:1]
            return
