"""DDP300: gradients are summed over the ranks, and each rank steps on its own all the same.

Proven, of steps without a DDP: what each optimizer stepped on was what the latest backward pass had
left on that rank, to the bit, and not the same on all ranks; from one line, all of them have
reduced just these gradients at such a step; and weights that were alike before the first step are
apart in the end. So the sum goes into a copy that nobody puts back, or comes after the step. By
evidence: that is so of some parameters at each of these steps, while what the ranks step on of all
others is shared. Where
ranks exchange as many numbers from another line, later on, these may be the weights, and the sum
but to look at: nothing is said. And where none of these gradients is reduced, but those of other
optimizers are, what this one trains is left out: by evidence, as it may be each rank's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import prod

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.by_hand import Look, lines_of, trained_by_hand
from ddpdoctor.diagnose.detectors.silent_divergence import listed
from ddpdoctor.diagnose.replicas import differing
from ddpdoctor.evidence import Collective, Place, RankEvidence, named
from ddpdoctor.evidence.events.by_hand import ByHand

_ENOUGH = 2
_ROUNDING = 1e-4


@detector(precedence=411)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, of the first optimizer of which that is so."""
    for ranks, looks in trained_by_hand(case):
        own = line_of_gradients(ranks, looks)
        seen = [look for look in looks if all(each.left for each in look)]
        partly = _shared_in_part(seen) if len(seen) >= _ENOUGH else None
        several = lines_of(ranks, "all_reduce", "") if partly else []
        line = own or line_of_gradients(ranks) or next((each.place for each in several), None)
        if line is None or any(_may_share_weights(rank, line) for rank in ranks):
            continue
        if len(seen) < _ENOUGH or not (partly or all(map(_is_alone, seen))):
            continue
        apart = differing([each.parameters for each in looks[-1]])
        if not apart or differing([each.parameters for each in looks[0]]):
            continue
        numbers = tuple(rank.rank for rank in ranks)
        step = RankPlace(ranks=numbers, place=looks[-1][0].place, doing="optimizer.step()")
        if partly and not {*partly[0]} & {*apart}:
            continue
        if partly:
            yield _left_in_part(numbers, line, step, *partly)
        elif own is None:
            yield _left_out(numbers, line, step, apart)
        else:
            yield _in_vain(numbers, line, step, apart)
        return


def _in_vain(
    numbers: tuple[int, ...], line: Place, step: RankPlace, apart: tuple[str, ...]
) -> Finding:
    reduces = RankPlace(ranks=numbers, place=line, doing="reduces gradients, or a copy of them")
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="error",
        certainty="proven",
        ranks=numbers,
        places=(reduces, step),
        cause=f"{named(numbers)} reduce their gradients at {line}, and step on what each had "
        f"for itself: the sum comes after the step, or stays in a copy ({listed(apart)} were "
        "alike at first and have parted).",
        cure=Cure(
            text="Reduce the gradients themselves (parameter.grad) after backward() and before "
            "step(), or copy the result back into them."
        ),
    )


def _left_out(
    numbers: tuple[int, ...], line: Place, step: RankPlace, apart: tuple[str, ...]
) -> Finding:
    others = RankPlace(ranks=numbers, place=line, doing="reduces gradients of other optimizers")
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(step, others),
        cause=f"{named(numbers)} step at {step.place} on what the backward pass of each has left, "
        f"while the gradients of other optimizers are reduced at {line}: {listed(apart)} were "
        "alike at first and have parted.",
        cure=Cure(
            text="Reduce these gradients too, or compute them from what is the same on all ranks; "
            "keep them apart only where each rank is to train something of its own."
        ),
    )


def _left_in_part(
    numbers: tuple[int, ...],
    line: Place,
    step: RankPlace,
    own: tuple[str, ...],
    shared: tuple[str, ...],
) -> Finding:
    reduces = RankPlace(ranks=numbers, place=line, doing="reduces gradients")
    return Finding(
        code="DDP300",
        title="silent-divergence",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(reduces, step),
        cause=f"{named(numbers)} share the gradients of {listed(shared)}, and step on what the "
        f"backward pass of each has left of {listed(own)}: these were alike at first and have "
        "parted.",
        cure=Cure(
            text="Reduce the gradients of all that this optimizer trains; keep some apart only "
            "where each rank is to train something of its own."
        ),
    )


def line_of_gradients(ranks: list[RankEvidence], looks: list[Look] | None = None) -> Place | None:
    """A line from which all ranks have reduced gradients as backward had left them.

    Of the parameters of one optimizer, if its looks are given, that go by names no other's have.
    """
    names = _names(ranks, looks[0][0].optimizer) if looks else None
    lines = [
        {
            call.place
            for call in rank.collectives
            if call.gradient
            and call.place is not None
            and (names is None or call.gradient in names)
        }
        for rank in ranks
    ]
    common = set.intersection(*lines)
    return min(common, key=lambda place: (place.file, place.line)) if common else None


def _names(ranks: list[RankEvidence], optimizer: int) -> set[str]:
    """What the parameters of this optimizer are called, and those of no other one."""
    seen = [each for rank in ranks for each in rank.of(ByHand)]
    own = {name for each in seen if each.optimizer == optimizer for name in each.parameters}
    return own.difference(*(each.parameters for each in seen if each.optimizer != optimizer))


def _may_share_weights(rank: RankEvidence, line: Place) -> bool:
    """Whether another line exchanges as much as a gradient has, after the first of these."""
    own = [call for call in rank.collectives if call.place == line]
    since, most = min(call.begun for call in own), max(map(_numbers, own))
    others = (call for call in rank.collectives if call.place != line and call.begun > since)
    return any(_numbers(call) >= most for call in others)


def _numbers(call: Collective) -> int:
    return sum(prod(shape) for shape in call.shapes)


def _is_alone(look: Look) -> bool:
    """Whether each rank steps on what backward has left, and these are not the same."""
    names = set.intersection(*({*each.left} & {*each.few} for each in look))
    return all(each.left[name] == each.few[name] for each in look for name in names) and any(
        len({tuple(each.left[name]) for each in look}) > 1 for name in names
    )


def _shared_in_part(looks: list[Look]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Whose gradients are stepped on as each backward pass has left them, and whose are shared.

    These were the same ones at each of these steps, and no parameter is neither.
    """
    own, shared = set[str](), set[str]()
    for look in looks:
        for name in set.intersection(*({*each.left} & {*each.few} for each in look)):
            if not any(any(each.left[name]) for each in look):
                continue  # zeros are alike with a reduction and without one
            kept = [_is_kept(each, name) for each in look]
            if all(kept) and any(each.left[name] != look[0].left[name] for each in look):
                own.add(name)
            elif not any(kept) and _are_close([_unclipped(each, name) for each in look]):
                shared.add(name)
            else:
                return None
    return (
        (tuple(sorted(own)), tuple(sorted(shared))) if own and shared and not own & shared else None
    )


def _unclipped(each: ByHand, name: str) -> list[float]:
    return [value / each.scaled for value in each.few[name]]


def _is_kept(each: ByHand, name: str) -> bool:
    return _are_close([_unclipped(each, name), each.left[name]])


def _are_close(of: list[list[float]]) -> bool:
    return all(
        math.isclose(value, first, rel_tol=_ROUNDING, abs_tol=_ROUNDING * max(map(abs, of[0])))
        for values in of[1:]
        for value, first in zip(values, of[0], strict=True)
    )
