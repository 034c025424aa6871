"""DDP309: the losses of the ranks are summed, and what is read of the sum is no average of them.

Seen at several calls of one line: each rank put in its loss, which its graph says is a mean over
its own samples, or that divided by the number of ranks; or the average of numbers that it held, or
the average, or the total, of numbers that it had read one by one. And the number that a rank read
next was the sum of the losses, or of these averages, over one number, always the same. The number
of ranks makes an average. With another whole number it is none; if that is the number of ranks
times how many batches or samples there are, it is an average over those, too. Where it is the sum
itself, somebody may divide later: that is told if the source shows that nobody does (`annotate`).
So it is where averages are summed, and the sum is used without being read. Of averages nothing else
is told, as what they are of is not known: hits, of which there are shares, or parts of a hundred.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.reductions import Calls, by_way, reads_after
from ddpdoctor.evidence import Collective, Place, RankEvidence, named
from ddpdoctor.evidence.events.reads import Read

_ENOUGH = 3
_ROUNDING = 2e-5
_LIKE = 1e-3
"""Sums that differ by less say nothing of what is made of them."""


@detector(precedence=467)
def detect(case: Case) -> Iterator[Finding]:
    """One finding for each line that sums."""
    ranks = [rank for rank in case.evidence.ranks if rank.groups]
    if len(ranks) < 2:
        return
    numbers = tuple(rank.rank for rank in ranks)
    for calls in by_way(ranks, _is_told):
        for put, shared, summed in _sums(calls, len(ranks)):
            sums = [total for _, total in summed]
            if len(sums) < _ENOUGH or not _vary(sums):
                continue
            for rank in ranks:
                for read, by in _divisors(rank, summed):
                    if not _is_fair(by, shared, ranks) and (put == "losses" or round(by) == 1):
                        yield _finding(numbers, calls[0][rank.rank], put, read, by, shared)
                        return
            if put == "averages" and not any(_is_read(rank, summed) for rank in ranks):
                yield _unread(numbers, calls[0][numbers[0]])
                return


def _is_told(call: Collective) -> bool:
    """Whether it sums losses, or averages."""
    return call.reduce_op == "SUM" and (bool(call.losses) or any(call.means))


def _sums(calls: list[Calls], world: int) -> Iterator[tuple[str, int, list[tuple[Calls, float]]]]:
    """What is summed: the losses, at each call, or they divided by the ranks; or averages."""
    for shared in (1, world):
        found = [(of, total) for of in calls if (total := _of_losses(of, shared)) is not None]
        if len(found) == len(calls):
            yield "losses", shared, found
    numbers = (len(call.means) for of in calls for call in of.values())
    for index in range(min(numbers, default=0)):
        means = [(of, [call.means[index] for call in of.values()]) for of in calls]
        yield "averages", 1, [(of, math.fsum(each)) for of, each in means if all(each)]


def _of_losses(calls: Calls, shared: int) -> float | None:
    """The sum of the losses of which each rank has put in its own, divided by `shared`."""
    own = [
        next((loss for loss in call.losses if _is(call.values[0] * shared, loss)), None)
        for call in calls.values()
    ]
    losses = [loss for loss in own if loss]
    return math.fsum(losses) if len(losses) == len(own) else None


def _vary(sums: list[float]) -> bool:
    return max(sums) - min(sums) > _LIKE * max(map(abs, sums))


def _divisors(
    rank: RankEvidence, summed: list[tuple[Calls, float]]
) -> Iterator[tuple[Read, float]]:
    """What a rank reads after each of these calls, and by what the sum was divided for that."""
    found: defaultdict[Place | None, dict[int, tuple[Read, float]]] = defaultdict(dict)
    for number, read in reads_after(rank, [of for of, _ in summed]):
        if value := float.fromhex(read.value):
            found[read.place].setdefault(number, (read, summed[number][1] / value))
    for each_line in found.values():
        reads = [*each_line.values()]
        by = reads[0][1]
        if len(reads) >= _ENOUGH and all(_is(each, by) for _, each in reads):
            yield reads[0][0], by


def _is_read(rank: RankEvidence, summed: list[tuple[Calls, float]]) -> bool:
    """Whether a number is read after these calls: it says what they have become, or may."""
    return any(True for _ in reads_after(rank, [of for of, _ in summed]))


def _is_fair(by: float, shared: int, ranks: list[RankEvidence]) -> bool:
    """Whether that makes an average, or is nothing that can be spoken of."""
    whole, world = round(by), len(ranks)
    if whole < 1 or not _is(by, whole) or whole == world:
        return True
    if shared > 1:
        return whole != world * world
    if whole == 1:
        return False
    more, rest = divmod(whole, world)
    return rest == 0 and _may_count(more, ranks)


def _may_count(number: int, ranks: list[RankEvidence]) -> bool:
    """Whether so many batches or samples may be added up; where it is not known, they may."""
    loaders = [loader for rank in ranks for loader in rank.loaders if loader.trains]
    counts = [(each.batches, each.batch_size, each.length) for each in loaders]
    known = {of for each in counts for of in each if of}
    return not loaders or any(None in each for each in counts) or number in known


def _finding(
    numbers: tuple[int, ...], call: Collective, put: str, read: Read, by: float, shared: int
) -> Finding:
    world, whole = len(numbers), round(by)
    of = f"the {put} of {named(numbers)}"
    if whole == 1:
        made = f"is the sum of {of}, {world} times their average"
    elif shared > 1:
        made = f"is the average of {of} divided by {world} once more"
    else:
        made = f"is the sum of {of} divided by {whole}, not by {world}"
    if put == "losses":
        mean = "each loss is a mean over its rank's samples"
    else:
        mean = "each average is one of numbers that its rank has for itself"
    return Finding(
        code="DDP309",
        title="sum-of-means",
        severity="info" if whole == 1 else "warning",
        certainty="evidence",
        is_suspicion=whole == 1,
        ranks=numbers,
        places=(
            RankPlace(
                ranks=numbers,
                place=call.place,
                doing=f"{call.op} of the {put}",
                stack=call.way,
            ),
            RankPlace(ranks=numbers, place=read.place, doing="reads what came of it"),
            *callers(numbers, call.way, call.place),
        ),
        cause=f"the number that is read at {read.place} {made}, at each call that was looked at; "
        f"{mean}.",
        cure=Cure(text="Divide the sum by the number of ranks, once."),
    )


def _unread(numbers: tuple[int, ...], call: Collective) -> Finding:
    """Where nobody reads a number, and what is compared is a tensor, only the source can tell."""
    world = len(numbers)
    return Finding(
        code="DDP309",
        title="sum-of-means",
        severity="info",
        certainty="evidence",
        is_suspicion=True,
        ranks=numbers,
        places=(
            RankPlace(
                ranks=numbers, place=call.place, doing=f"{call.op} of averages", stack=call.way
            ),
            *callers(numbers, call.way, call.place),
        ),
        cause=f"what {named(numbers)} sum up at {call.place} is an average of numbers that each "
        f"has for itself, at each call that was looked at, and what comes of it is left as it is: "
        f"{world} times their average.",
        cure=Cure(text="Divide the sum by the number of ranks, once."),
    )


def _is(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDING)
