"""DDP400, DDP402, DDP410, DDP417: ranks that wait for each other, or for one that has left.

The source is not looked at here: `annotate` does that, and finds a narrower name where it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, first_line, sides
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.histories import last_together, parting
from ddpdoctor.diagnose.waiting import Deadlock, culprits
from ddpdoctor.evidence import Place, RankEvidence, named

_WORLD = "0"
_SHOWN = 8
"""So many of the ranks that have left are shown with the line where they were seen last."""


@detector(precedence=335)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that stand elsewhere than most, or that have left."""
    if case.deadlock is not None:
        yield _deadlock(case, case.deadlock)
    elif case.deserters:
        yield _deserted(case)


def _deadlock(case: Case, deadlock: Deadlock) -> Finding:
    """The culprits' places first. Where nobody can be named, that is said."""
    case.explain(deadlock)
    blamed = culprits(deadlock, case.evidence.ranks)
    # What only two share is met by its other end alone: all miss a collective.
    blocked = sorted(deadlock.blocked, key=lambda each: each.collective.op in ("send", "recv"))
    stands = [
        side.model_copy(update={"unfinished": _unfinished(case, side.ranks)})
        for side in sorted(sides(blocked), key=lambda side: not {*side.ranks} & {*blamed})
    ]
    gone = [case.evidence.ranks[rank] for rank in deadlock.gone]
    ways = [f"{named(deadlock.gone)} {_over(gone)}"] if gone else []
    ways += [f"{named(p.ranks)} in {p.doing}" + _at(p.place) for p in stands]
    undecidable = ""
    if not blamed:
        counts = " against ".join(str(len(side.ranks)) for side in stands)
        undecidable = f" Which side is wrong is undecidable: {counts}."
    parties = [side.ranks for side in stands]
    parties += [deadlock.gone] if gone else []
    code, title, cure = _name(deadlock)
    return Finding(
        code=code,
        title=title,
        severity="error",
        certainty="proven",
        ranks=blamed,
        places=(
            *parting(case.evidence.ranks, parties, deadlock.blocked[0].collective.group),
            *(_departed(case, each) for each in gone[:_SHOWN]),
            *stands,
            *_together(case, deadlock),
        ),
        cause=f"the ranks wait for each other for ever: {'; '.join(ways)}.{undecidable}",
        cure=Cure(text=cure),
        consequences=case.consequences(),
    )


def _name(deadlock: Deadlock) -> tuple[str, str, str]:
    ops = {each.collective.op for each in deadlock.blocked}
    if ops <= {"send", "recv"} and not deadlock.gone:
        return (
            "DDP417",
            "send-recv-deadlock",
            "Let one side send first and the other receive first, or use batch_isend_irecv.",
        )
    if deadlock.gone:
        return "DDP410", "early-exit", "Let all ranks leave together, after their last collective."
    return "DDP400", "deadlock", "Every rank must call the same collectives in the same order."


def _together(case: Case, deadlock: Deadlock) -> Iterator[RankPlace]:
    """Where all of them met for the last time, if that is a line of the user's."""
    group = deadlock.blocked[0].collective.group
    numbers = [b.collective.seq for b in deadlock.blocked if b.collective.group == group]
    ranks = tuple(sorted({*(b.rank for b in deadlock.blocked), *deadlock.gone}))
    if case.evidence.behind:  # what most had called was not told
        ranks = tuple(rank for rank in ranks if case.evidence.ranks[rank].collectives)
    if len(ranks) < 2 or any(b.collective.op in ("send", "recv") for b in deadlock.blocked):
        return
    call = last_together([case.evidence.ranks[rank] for rank in ranks], group, min(numbers))
    if call is not None:
        doing = f"{call.op} #{call.seq}, the last of its group that all of them called"
        yield RankPlace(ranks=ranks, place=call.place, doing=doing, phase="together")


def _suffered(raised: Raised) -> RankPlace:
    exception = raised.exception
    return RankPlace(
        ranks=(raised.rank.rank,),
        place=exception.place,
        doing=f"raised {exception.type}: {first_line(exception.message, 60)}",
        stack=exception.frames,
    )


def _unfinished(case: Case, ranks: Iterable[int]) -> tuple[Place, ...]:
    """Where all of them had more to go through, the last time that they went through it."""
    every = [
        {
            last.place
            for loader in case.evidence.ranks[rank].loaders
            if loader.epochs and (last := loader.epochs[max(loader.epochs)]).ended is None
        }
        for rank in ranks
    ]
    return tuple(place for place in set.intersection(*every) if place is not None)


def _departed(case: Case, rank: RankEvidence) -> RankPlace:
    last = max(rank.collectives, key=lambda call: call.begun, default=None)
    place = last.place if last is not None else None
    doing = f"{_over([rank])}; last seen here"
    return RankPlace(
        ranks=(rank.rank,),
        place=place,
        doing=doing,
        phase="ended",
        unfinished=_unfinished(case, [rank.rank]),
    )


def _over(ranks: list[RankEvidence]) -> str:
    if any(rank.fate is not None for rank in ranks):
        return "has ended"
    return "is at its end, where it waits for processes that it has started"


def _deserted(case: Case) -> Finding:
    """A rank ended well while the others still wanted it: they see a closed connection."""
    left = case.deserters
    suffering = [each for each in case.casualties if each.rank not in left]
    parties = [
        party
        for party in (tuple(r.rank for r in left), tuple(e.rank.rank for e in suffering))
        if party
    ]
    case.deserters = []
    return Finding(
        code="DDP410",
        title="early-exit",
        severity="error",
        certainty="proven",
        ranks=min(parties, key=len),
        places=(
            *parting(case.evidence.ranks, parties, _WORLD),
            *(_departed(case, each) for each in left),
            *map(_suffered, suffering),
        ),
        cause=f"{named(rank.rank for rank in left)} ended while the others still wanted to "
        f"communicate{_at(suffering[0].exception.place) if suffering else ''}.",
        cure=Cure(text="Let all ranks leave together, after their last collective."),
        consequences=case.consequences(),
    )


def _at(place: Place | None) -> str:
    return f" at {place}" if place else ""
