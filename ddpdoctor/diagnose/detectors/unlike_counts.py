"""DDP309: ranks average numbers of their own, of unlike how many, and take the plain mean of that.

Seen at each call of one line that is known of all ranks, two or more: each put in the average of
numbers that it had read one by one, or held, and had far more of them than another rank. And the
number that was read next was the sum of these averages over the number of ranks, or the reduction
was a mean by itself: a number of the rank with few counts for more than one of the rank with many.
Where that is hardly another number than the mean of all of them, it is a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.reductions import Calls, by_way, reads_after
from ddpdoctor.evidence import Collective, Place, RankEvidence, named

_ENOUGH = 2
_WIDELY = 1.2
"""The ratio of most to fewest, at each of the calls: of less the mean hardly changes."""
_ROUNDING = 2e-5
_NOTICED = 0.01
"""How far, as a share of it, what comes of it is from the mean of all numbers."""


@detector(precedence=472)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line that reduces."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2:
        return
    for calls in by_way(ranks, _is_told):
        for index in range(min((len(c.terms) for of in calls for c in of.values()), default=0)):
            known = [of for of in calls if all(call.terms[index] for call in of.values())]
            if len(known) < _ENOUGH or not all(_ratio(of, index) >= _WIDELY for of in known):
                continue
            read, means = _read(ranks, known, index), known[0][ranks[0].rank].reduce_op == "AVG"
            if means or read is not None:
                yield _finding(ranks, known, index, read)
                return


def _is_told(call: Collective) -> bool:
    return call.reduce_op in ("SUM", "AVG") and any(call.terms)


def _ratio(of: Calls, index: int) -> float:
    counts = [call.terms[index] for call in of.values()]
    return max(counts) / min(counts)


def _error(of: Calls, index: int) -> float:
    """How far the plain mean is from that of all numbers, as a share of it."""
    calls = of.values()
    plain = math.fsum(c.values[index] for c in calls) / len(of)
    whole = math.fsum(c.values[index] * c.terms[index] for c in calls)
    whole /= sum(c.terms[index] for c in calls)
    return abs(plain - whole) / (abs(whole) or 1.0)


def _read(ranks: list[RankEvidence], known: list[Calls], index: int) -> Place | None:
    """Where, after each of these calls, the sum divided by the number of ranks is read."""
    plain = [math.fsum(c.values[index] for c in of.values()) / len(ranks) for of in known]
    for rank in ranks:
        found: dict[Place, set[int]] = {}
        for number, read in reads_after(rank, known):
            value = float.fromhex(read.value)
            if read.place and math.isclose(value, plain[number], rel_tol=_ROUNDING):
                found.setdefault(read.place, set()).add(number)
        for place, numbers in found.items():
            if len(numbers) == len(known):
                return place
    return None


def _finding(
    ranks: list[RankEvidence], known: list[Calls], index: int, read: Place | None
) -> Finding:
    numbers = tuple(rank.rank for rank in ranks)
    widest = max(known, key=lambda of: _ratio(of, index))
    call = widest[numbers[0]]
    told = ", ".join(f"{widest[rank].terms[index]} on rank {rank}" for rank in numbers[:8])
    at = (RankPlace(ranks=numbers, place=read, doing="reads the mean of them"),) if read else ()
    return Finding(
        code="DDP309",
        title="mean-of-means",
        severity="warning" if any(_error(of, index) >= _NOTICED for of in known) else "info",
        certainty="evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=call.place, doing=f"{call.op} of averages"),
            *at,
            *callers(numbers, call.way, call.place),
        ),
        cause=f"what {named(numbers)} put in is each the average of numbers of its own ({told}), "
        f"and what comes of it is the plain mean of these: a number counts up to "
        f"{_ratio(widest, index):.1f} times as much as another.",
        cure=Cure(text="Reduce the totals and the counts, and divide by the count of all ranks."),
        evidence=(f"at each of {len(known)} calls that were looked at",),
    )
