"""DDP211: gradients that ranks put together by hand are no average of theirs.

Proven, of steps without a DDP, by some elements of each gradient: what the latest backward pass had
left on the ranks was not the same, and what all of them stepped on was the sum of that, times one
number which was the same for every element at every step that was looked at. One over the number of
ranks is an average. With another, each step is as much longer or shorter, if what goes backward is
a mean over each rank's own samples, by itself: its graph says so. A rate that was chosen for it may
make up for that, so it is evidence; and where the optimizer goes by the direction alone, or what is
reduced is clipped, a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.by_hand import Look, lines_of, trained_by_hand
from ddpdoctor.evidence import named
from ddpdoctor.evidence.events.by_hand import ByHand

_ENOUGH, _ELEMENTS = 2, 8
"""Steps, and elements of all of them."""
_ROUNDING = 1e-5
_CANCELLED = 0.05
"""A sum so much smaller than its terms says little of what it was multiplied by."""
_PROPORTIONAL = frozenset({"SGD", "ASGD"})
"""Optimizers whose step is as long as the gradient is."""


@detector(precedence=426)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so."""
    for ranks, every in trained_by_hand(case):
        world = len(ranks)
        looks = [look for look in every if all(each.left for each in look)]
        by = factor_of(looks)
        if by is None or not all(_is_mean(each, world) for look in looks for each in look):
            continue
        passes = looks[0][0].passes
        if any(_is(by * world, fair) for fair in (1.0, passes, 1 / passes)):
            continue
        numbers, last = tuple(rank.rank for rank in ranks), looks[-1][0]
        yield Finding(
            code="DDP211",
            title="batch-size-meaning",
            severity="info" if _is_note(looks) else "warning",
            certainty="evidence",
            ranks=numbers,
            places=(
                *lines_of(ranks, "all_reduce", "sums gradients"),
                RankPlace(ranks=numbers, place=last.place, doing="optimizer.step()"),
            ),
            cause=f"{named(numbers)} step on {_told(by, world)}, and each rank's loss is a mean "
            f"over its own samples: the gradient is {_times(by * world)} that of one process with "
            "all the samples.",
            cure=Cure(
                text="Divide the sum of the gradients by the number of ranks, once; leave it only "
                "if the learning rate was chosen for it."
            ),
            evidence=(
                f"the same at {len(looks)} steps that were looked at",
                *_indifferent(looks),
            ),
        )
        return


def _told(by: float, world: int) -> str:
    if _is(by, 1.0):
        return f"the sum of their gradients, which nothing has divided by {world}"
    if _is(by * world * world, 1.0):
        return f"the sum of their gradients divided by {world} twice"
    return f"the sum of their gradients {'times' if by > 1 else 'divided by'} {max(by, 1 / by):.6g}"


def _times(ratio: float) -> str:
    return f"{ratio:.4g} times" if ratio > 1 else f"1/{1 / ratio:.4g} of"


def _is_note(looks: list[Look]) -> bool:
    """Whether the step is about as long as it would be: by its rule, or as it is clipped after."""
    return looks[-1][0].rule not in _PROPORTIONAL or any(look[0].scaled != 1.0 for look in looks)


def _indifferent(looks: list[Look]) -> Iterator[str]:
    rule = looks[-1][0].rule
    if rule and rule not in _PROPORTIONAL:
        yield f"{rule} divides by the size of the gradient: its step is hardly another one"
    elif _is_note(looks):
        yield "it is clipped after that: where the average would be, too, the step is the same"


def factor_of(looks: list[Look]) -> float | None:
    """By what the sum of the ranks' own gradients was multiplied, at each step and everywhere."""
    shares: list[float] = []
    if len(looks) < _ENOUGH:
        return None
    for look in looks:
        if all(each.talked and each.left == look[0].left for each in look):
            continue  # reduced before it could be looked at
        found = list(_elements(look))
        if not found:
            return None
        shares += found
    middle = sorted(shares)[len(shares) // 2]
    if len(shares) < _ELEMENTS or middle <= 0.0 or not all(_is(each, middle) for each in shares):
        return None
    return middle


def _elements(look: Look) -> Iterator[float]:
    """By what the sum of each element was multiplied, of those that ranks had differently.

    NaN where they step on different ones.
    """
    for name in set.intersection(*({*each.left} & {*each.few} for each in look)):
        for own, stepped in zip(
            zip(*(each.left[name] for each in look), strict=False),
            zip(*(each.few[name] for each in look), strict=False),
            strict=False,
        ):
            total, size = math.fsum(own), max(map(abs, own))
            if len(set(own)) == 1 or abs(total) < _CANCELLED * size:
                continue
            scaled = look[0].scaled if len({each.scaled for each in look}) == 1 else math.nan
            yield stepped[0] / (total * scaled) if len(set(stepped)) == 1 else math.nan


def _is_mean(look: ByHand, world: int) -> bool:
    """Whether a mean goes backward as it is, or as one of several in a row.

    Not if it is made smaller by the number of ranks: that is to make up for the sum.
    """
    parts = (1.0, 1 / look.passes) if look.passes else ()
    shared = [part / world for part in parts]
    sizes: Iterable[float] = (*look.factors, sum(look.factors))
    is_plain = any(_is(size, part) for size in sizes for part in parts)
    return is_plain and not all(any(_is(f, part) for part in shared) for f in look.factors)


def _is(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_ROUNDING)
