"""DDP309 of a metric: the ranks' means over shares of unlike size are averaged plainly.

Seen: the ranks evaluated numbers of samples that are far apart, and then reduced single numbers
that are no counts, and nothing else. By AVG that is a mean of means, and so is a sum where the
number read next is its share of one rank; another may be one of sums, so it is a note, which
`annotate` makes a warning where it is divided by the number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import loaders
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.reductions import by_way, reads_after
from ddpdoctor.evidence import Collective, Loader, RankEvidence

_WIDELY = 1.25
"""So much larger must the largest share be than the smallest."""
_ROUNDING = 2e-5


@detector(precedence=466, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each loader that is evaluated so."""
    for kin in loaders.kin(case.evidence):
        if len(kin) < len(case.evidence.ranks) or any(each.trains for each in kin.values()):
            continue
        trained = any(each.trains for rank in case.evidence.ranks for each in rank.loaders)
        shares = {rank: _samples(each, trained=trained) for rank, each in kin.items()}
        fewest = min(shares.values())
        if not fewest or max(shares.values()) < _WIDELY * fewest:
            continue
        call = _averaged(case.evidence.ranks[0], kin[0])
        if call is None:
            continue
        ranks = tuple(sorted(kin))
        is_read = _is_read_in_parts(case.evidence.ranks, call)
        told = ", ".join(f"{n} on rank {rank}" for rank, n in sorted(shares.items())[:8])
        yield Finding(
            code="DDP309",
            title="plain-average",
            severity="warning" if call.reduce_op == "AVG" or is_read else "info",
            certainty="evidence",
            is_suspicion=not is_read,
            ranks=ranks,
            places=(
                RankPlace(ranks=ranks, place=call.place, doing=f"{call.op} of a mean"),
                *callers(ranks, call.way, call.place),
                *loaders.places(kin, "built the loader"),
            ),
            cause=f"the ranks evaluate shares of unlike size ({told} samples), and what "
            f"{call.op} puts together weighs them alike: no counts are reduced.",
            cure=Cure(text="Reduce the sum and the count, and divide once."),
        )


def _samples(loader: Loader, *, trained: bool) -> int:
    """Of a whole pass without gradients; 0 where that is not known.

    Where another loader is `trained` on, they may be switched off within the loop alone.
    """
    passes = loader.epochs.values()
    whole = any(epoch.ended and (trained or not epoch.graded) for epoch in passes)
    is_known = whole and loader.sampler is None and not loader.iterable
    return (loader.length or 0) if is_known else 0


def _averaged(rank: RankEvidence, loader: Loader) -> Collective | None:
    """The reduction of one number after a pass, where all that is communicated is such numbers."""
    for epoch in loader.epochs.values():
        calls = [c for c in loaders.told_after(rank, epoch) if c.op != "barrier"]
        if calls and all(_is_one_number(call) for call in calls):
            return calls[0]
    return None


def _is_read_in_parts(ranks: list[RankEvidence], call: Collective) -> bool:
    """Whether a number read after such a sum, of unlike numbers, is it over the number of ranks."""

    def is_alike(other: Collective) -> bool:
        same = (other.place, other.way, other.op) == (call.place, call.way, call.op)
        return same and other.reduce_op == "SUM" and len(other.values) == 1

    for calls in by_way(ranks, is_alike):
        given = [[each.values[0] for each in of.values()] for of in calls]
        for number, read in reads_after(ranks[0], calls) if calls else ():
            share = math.fsum(given[number]) / len(ranks)
            is_one = math.isclose(float.fromhex(read.value), share, rel_tol=_ROUNDING)
            if is_one and len(set(given[number])) > 1:
                return True
    return False


def _is_one_number(call: Collective) -> bool:
    """That is no count."""
    reduced = call.op in ("all_reduce", "reduce") and call.reduce_op in ("SUM", "AVG")
    return reduced and bool(call.content) and sum(map(math.prod, call.shapes)) == 1
