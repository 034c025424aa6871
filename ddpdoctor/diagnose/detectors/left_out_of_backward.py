"""DDP418: the backward pass of a collective is a collective, and some ranks' losses leave it out.

`torch.distributed.nn` hands on gradients by collectives of its own. That ranks wait for each other
in one backward pass each is proven: some of them in that of such a collective, which all had called
before, the others in DDP's reduction. By evidence, these have left it out: what they go backward
from was computed without what they were given there, as by an early `return` of a zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, sides
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.waiting import Blocked
from ddpdoctor.evidence import Collective, RankEvidence, named

_DIFFERENTIABLE = "/torch/distributed/nn/functional.py"
_BACKWARD = ".backward"


@detector(precedence=333)
def detect(case: Case) -> Iterator[Finding]:
    """Name the call that went backward on some ranks alone, and the ranks that left it out."""
    if case.deadlock is None or case.deadlock.gone:
        return
    blocked = case.deadlock.blocked
    going = [each for each in blocked if _goes_backward_through_one(each)]
    rest = [each for each in blocked if each not in going]
    if not going or not rest or any(each.phase != "backward" for each in sides(rest)):
        return
    call = _called(case.evidence.ranks[going[0].rank], going[0])
    others = [_called(case.evidence.ranks[each.rank], going[0]) for each in rest]
    if call is None or any(each is None or each.place != call.place for each in others):
        return
    case.explain(case.deadlock)
    ranks = tuple(sorted(each.rank for each in rest))
    there = RankPlace(
        ranks=tuple(sorted(each.rank for each in blocked)),
        place=call.place,
        doing=f"{call.op} #{call.seq}, which goes backward by a collective, too",
        phase="together",
    )
    yield Finding(
        code="DDP418",
        title="left-out-of-backward",
        severity="error",
        certainty="evidence",
        ranks=ranks,
        places=(there, *sides(rest), *sides(going)),
        cause=f"{named(sorted(each.rank for each in going))} {_is(going)} in the backward pass of "
        f"{call.op} ({call.place}), which is a collective, and {named(ranks)} in the reduction of "
        "gradients: the loss there was computed without what was gathered.",
        cure=Cure(
            text="Let the loss of every rank depend on it, where there is nothing to learn by "
            "`0.0 * gathered.sum()`."
        ),
        consequences=case.consequences(),
    )


def _goes_backward_through_one(blocked: Blocked) -> bool:
    return any(
        place.file.endswith(_DIFFERENTIABLE) and place.function.endswith(_BACKWARD)
        for place in blocked.stuck.stack
    )


def _called(rank: RankEvidence, blocked: Blocked) -> Collective | None:
    """The call whose gradient it is: the latest of such numbers, of a line of the user's own."""
    gradient = blocked.collective
    calls = (
        call
        for call in reversed(rank.collectives)
        if call.group == gradient.group
        and call.seq < gradient.seq
        and call.dtype == gradient.dtype
        and call.shapes[:1] == gradient.shapes[:1]
        and call.place is not None
    )
    return next(calls, None)


def _is(several: list[Blocked]) -> str:
    return "is" if len(several) == 1 else "are"
