"""DDP402 as a crash: different collectives of the ranks met under one number.

gloo sends no names along: what one rank sends as the second piece of DDP's gradients another takes
for the scalar that it wants to reduce. Where the sizes differ it raises on one rank, or aborts it;
the others lose a peer. So all of them are heard, those too that were ended for it: what each issued
last, and out of what its exception came. What C++ issues for DDP is not among the calls that Python
has made, so a rank that has made none of this number was in one of DDP's. Where Python has made
none at all, passes of two models may have met: of the first passes it is known which model each
rank gave its samples to, and where there are several models, which lines went backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose import histories, parting
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Collective, Place, RankEvidence, named
from ddpdoctor.evidence.events.backward import Backward
from ddpdoctor.evidence.events.given import Given

_SOON, _KNOWN = 2, 40
"""Passes after the first that was another, and passes of which each is known."""
_RECENT = 2.0
"""Seconds before the crash in which a rank must have made the call that met another."""


@dataclass(frozen=True, slots=True)
class _Witness:
    """What a rank did last."""

    rank: RankEvidence
    call: Collective | None
    """The call under the number that is in question; None if Python has made none of it."""
    place: Place | None
    doing: str
    way: tuple[Place, ...]


@detector(precedence=312)
def detect(case: Case) -> Iterator[Finding]:
    """Where a rank was aborted, or was told of sizes, in a call that others did not make."""
    vanished = _vanished(case)
    struck = [each.rank for each in parting.struck(case)] or vanished
    if not struck:
        return
    when = min(_end(rank) for rank in struck)
    call = _in_question(case, when)
    witnesses = [_witness(rank, call) for rank in case.evidence.ranks if rank.groups and call]
    if call is None or all(each.call and each.call.place == call.place for each in witnesses):
        yield from (
            _crossed_backwards(case, struck)
            or [*_crossed_passes(case, struck)]
            or [*_within_a_pass(case, struck)]
        )
        return
    made = [each for each in witnesses if each.call is not None and each.call.place == call.place]
    others = [each for each in witnesses if each not in made and each.place is not None]
    if not made or not others:
        return
    if vanished and any(each.rank not in vanished for each in made):
        return  # they made a call that it was still to make
    yield _finding(case, call, made, others, struck)


def _vanished(case: Case) -> list[RankEvidence]:
    """Those whose end nobody saw and whose peers lost them: gloo may have aborted them.

    So it is in the folder of a job that no doctor has started.
    """
    if not case.raised or not parting.has_parted(case):
        return []
    return [
        rank
        for rank in case.evidence.ranks
        if rank.collectives
        and (rank.fate, rank.exiting, rank.left, rank.ending) == (None, None, None, None)
    ]


def _explained(case: Case, struck: list[RankEvidence]) -> tuple[str, ...]:
    """Take it off the list of what is to be explained; what it meant for the other ranks."""
    if parting.has_parted(case):
        return parting.explain_parting(case)
    case.explain(
        *(each for each in case.died if each.rank in struck),
        *(each for each in case.raised if each.rank in struck),
    )
    return case.consequences()


def _crossed_backwards(case: Case, struck: list[RankEvidence]) -> list[Finding]:
    """Ranks whose latest passes under one number of the group began at different lines."""
    by_number: dict[int, dict[int, Backward]] = {}
    for rank in case.evidence.ranks:
        for each in rank.of(Backward):  # what reduced nothing is followed by one of the same number
            by_number.setdefault(each.seq, {})[rank.rank] = each
    for seq, of in sorted(by_number.items()):
        sides: dict[tuple[Place, ...], list[int]] = {}
        for number, each in of.items():
            sides.setdefault(each.way, []).append(number)
        if len(sides) > 1 and all(sides):
            places = [
                RankPlace(
                    ranks=tuple(ranks),
                    place=way[-1],
                    doing=f"goes backward, all_reduce #{seq + 1}",
                    phase="backward",
                    stack=way,
                )
                for way, ranks in sorted(sides.items(), key=lambda side: len(side[1]))
            ]
            return [_unlike_gradients(case, struck, places, "")]
    return []


def _crossed_passes(case: Case, struck: list[RankEvidence]) -> Iterator[Finding]:
    """Ranks that gave their latest samples to different models, or from different lines."""
    ranks = case.evidence.ranks
    passes: list[list[Given]] = [rank.of(Given) for rank in ranks]
    if len(ranks) < 2 or not all(passes):
        return
    both = min(map(len, passes))
    parted = (n for n in range(both) if len({(of[n].wrapper, of[n].place) for of in passes}) > 1)
    at = next(parted, both)
    # Each of the first passes is known of; who had more of them may have parted where nobody saw.
    if at == both or max(map(len, passes)) > min(at + _SOON, _KNOWN):
        return
    sides: dict[tuple[int, Place | None], list[tuple[RankEvidence, Given]]] = {}
    for rank, of in zip(ranks, passes, strict=True):
        sides.setdefault((of[at].wrapper, of[at].place), []).append((rank, of[at]))
    parties = sorted(sides.values(), key=len)
    places = [
        RankPlace(
            ranks=tuple(rank.rank for rank, _ in side),
            place=side[0][1].place,
            doing=f"gives samples to DDP {side[0][1].wrapper + 1}",
            phase="backward",
            stack=side[0][1].way,
        )
        for side in parties
    ]
    yield _unlike_gradients(case, struck, places, f"after {at} passes alike ")


def _within_a_pass(case: Case, struck: list[RankEvidence]) -> Iterator[Finding]:
    """Ranks that were in one and the same pass through several models: some went past one of them.

    Nobody has called anything since it began, and until then all had called as often.
    """
    ranks = case.evidence.ranks
    last = [rank.of(Backward)[-1] for rank in ranks if rank.of(Backward)]
    if len(last) < 2 or len(last) < len(ranks) or any(each != last[0] for each in last):
        return
    seq, way = last[0].seq, last[0].way
    called = (c for rank in ranks for c in rank.collectives if c.group in rank.groups)
    if not way or any(call.seq > seq for call in called):
        return
    numbers = tuple(rank.rank for rank in ranks)
    at = RankPlace(
        ranks=numbers,
        place=way[-1],
        doing=f"go backward, all_reduce #{seq + 1}",
        phase="backward",
        stack=way,
    )
    yield Finding(
        code="DDP308",
        title="no-loss-on-one-rank",
        severity="error",
        certainty="evidence",
        ranks=(),
        places=(at, *_given_last(ranks)),
        cause=f"gradients of different models met in one backward pass ({way[-1]}), which all "
        f"ranks began alike: the loss of some ranks leaves out a model that the others' goes "
        f"through. {named(rank.rank for rank in struck)} got what was not meant for it.",
        cure=Cure(
            text="Let the loss of every rank depend on every model, where there is nothing to "
            "learn by `0.0 * output.sum()`."
        ),
        consequences=_explained(case, struck),
    )


def _given_last(ranks: Sequence[RankEvidence]) -> Iterator[RankPlace]:
    """Where each of the models was given samples last."""
    numbers = tuple(rank.rank for rank in ranks)
    last = {each.wrapper: each.place for each in ranks[0].of(Given)}
    for wrapper, place in sorted(last.items()):
        yield RankPlace(ranks=numbers, place=place, doing=f"give samples to DDP {wrapper + 1}")


def _unlike_gradients(
    case: Case, struck: list[RankEvidence], places: list[RankPlace], since: str
) -> Finding:
    """The ranks at each of these places, the fewest first, took gradients of others for theirs."""
    ways = "; ".join(f"{named(each.ranks)} {each.doing} at {each.place}" for each in places)
    few, many = places[0].ranks, places[-1].ranks
    return Finding(
        code="DDP402",
        title="collective-order-mismatch",
        severity="error",
        certainty="evidence",
        ranks=few if len(few) < len(many) else (),
        places=tuple(places),
        cause=f"gradients of different passes met: {since}{ways}. "
        f"{named(rank.rank for rank in struck)} got what was not meant for it.",
        cure=Cure(text="Make the same passes in the same order on every rank."),
        consequences=_explained(case, struck),
    )


def _in_question(case: Case, when: float) -> Collective | None:
    """The last call that Python made on any rank before the crash, if it was just before."""
    last = [
        rank.collectives[-1]
        for rank in case.evidence.ranks
        if rank.collectives and rank.collectives[-1].peer is None
    ]
    recent = [call for call in last if call.begun > when - _RECENT and call.place is not None]
    return max(recent, key=lambda call: call.begun, default=None)


def _end(rank: RankEvidence) -> float:
    ending = rank.ending
    if ending is not None:
        return ending.time
    return rank.fate.time if rank.fate is not None else rank.last_event


def _witness(rank: RankEvidence, call: Collective) -> _Witness:
    mine = next(
        (c for c in reversed(rank.collectives) if (c.group, c.seq) == (call.group, call.seq)), None
    )
    if mine is not None:
        doing = f"{mine.op} #{mine.seq}"
        return _Witness(rank, mine, mine.place, doing, mine.way)
    ending = rank.ending or (rank.thrown[-1] if rank.thrown else None)
    if ending is not None and ending.place is not None:
        inside = "backward" if ending.out_of == "backward" else _inside(ending.frames)
        return _Witness(rank, None, ending.place, f"in {inside} meanwhile", ending.frames)
    backward = [
        each.places["backward"] for each in rank.training.values() if "backward" in each.places
    ]
    stuck = rank.stuck.place if rank.stuck is not None and rank.stuck.waiting else None
    place = stuck or (backward[-1] if backward else None)
    return _Witness(rank, None, place, "in DDP's own all_reduce (backward)", ())


def _inside(frames: tuple[Place, ...]) -> str:
    functions = [frame.function for frame in frames]
    if any(f.endswith("_engine_run_backward") for f in functions):
        return "backward"
    return "forward" if any(f.endswith("_pre_forward") for f in functions) else "another call"


def _finding(
    case: Case,
    call: Collective,
    made: list[_Witness],
    others: list[_Witness],
    struck: list[RankEvidence],
) -> Finding:
    few, many = sorted((made, others), key=len)
    sides = [*_sides(few), *_sides(many)]
    parties = [tuple(each.rank.rank for each in side) for side in (few, many)]
    parted = [*histories.parting(case.evidence.ranks, parties, call.group)]
    ways = "; ".join(
        f"{named(p.ranks)} {p.doing}" + (f" at {p.place}" if p.place else "") for p in sides
    )
    return Finding(
        code="DDP402",
        title="collective-order-mismatch",
        severity="error",
        certainty="evidence",
        ranks=tuple(each.rank.rank for each in few) if len(few) < len(many) else (),
        places=(*parted, *sides),
        cause=f"different collectives of the ranks met under number {call.seq} of their group: "
        f"{ways}. {named(rank.rank for rank in struck)} got what was not meant for it.",
        cure=Cure(text="Call the same collectives in the same order on every rank."),
        consequences=_explained(case, struck),
    )


def _sides(witnesses: list[_Witness]) -> Iterator[RankPlace]:
    together: dict[tuple[Place | None, str], list[_Witness]] = {}
    for each in witnesses:
        together.setdefault((each.place, each.doing), []).append(each)
    for (place, doing), side in together.items():
        ranks = tuple(each.rank.rank for each in side)
        yield RankPlace(ranks=ranks, place=place, doing=doing, stack=side[0].way)
