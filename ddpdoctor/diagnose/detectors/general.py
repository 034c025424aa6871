"""What no pitfall explains: named by family, with the same ranks, lines and certainty."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Died, Raised, first_line, sides
from ddpdoctor.diagnose.waiting import Deadlock
from ddpdoctor.evidence import Place


def detect(case: Case) -> Iterator[Finding]:
    """One finding for each kind of incident left; exceptions before deaths before waiting."""
    if case.raised:
        yield _raised(case, case.raised)
    if case.died:
        yield _died(case, case.died)
    if case.deadlock is not None:
        yield _deadlock(case, case.deadlock)


def _raised(case: Case, raised: list[Raised]) -> Finding:
    first = min(raised, key=lambda each: (each.exception.time, each.rank.rank))
    same = [
        each
        for each in raised
        if (each.exception.type, each.exception.place)
        == (first.exception.type, first.exception.place)
    ]
    others = [each for each in raised if each not in same]
    joined = any(each.rank.groups for each in same)
    message = first_line(first.exception.message)
    return Finding(
        code="DDP400" if joined else "DDP100",
        title="exception" if joined else "exception-before-init",
        severity="error",
        certainty="proven",
        ranks=tuple(each.rank.rank for each in same),
        places=tuple(
            RankPlace(
                ranks=(each.rank.rank,),
                place=each.exception.place,
                doing=f"raised {each.exception.type}",
            )
            for each in (*same, *others)
        ),
        cause=f"{first.exception.type}: {message}",
        cure=Cure(text="Mend the exception; the other ranks' errors follow from it."),
        consequences=case.consequences(),
    )


def _died(case: Case, died: list[Died]) -> Finding:
    names = sorted({signal.Signals(each.signal).name for each in died})
    return Finding(
        code="DDP400",
        title="rank-died",
        severity="error",
        certainty="proven",
        ranks=tuple(each.rank.rank for each in died),
        places=tuple(
            RankPlace(ranks=(each.rank.rank,), place=_last_place(each), doing="was killed")
            for each in died
        ),
        cause=f"ended by {', '.join(names)}.",
        cure=Cure(
            text="SIGKILL that nobody sent is the kernel out of memory (see dmesg); SIGSEGV and "
            "SIGABRT are crashes of native code: the last place is where to look."
        ),
        consequences=case.consequences(),
    )


def _last_place(died: Died) -> Place | None:
    if died.rank.stuck is not None:
        return died.rank.stuck.place
    return died.rank.collectives[-1].place if died.rank.collectives else None


def _deadlock(case: Case, deadlock: Deadlock) -> Finding:
    """The culprits are the ranks that have gone, else the minority; on a tie nobody is named."""
    places = sides(deadlock.blocked)
    tie = len(places) > 1 and len(places[0].ranks) == len(places[-1].ranks)
    minority = [] if tie else [rank for side in places[:-1] for rank in side.ranks]
    culprits = list(deadlock.gone) or minority
    ways = [f"rank {rank} has ended" for rank in deadlock.gone]
    ways += [
        f"{_ranks(p.ranks)} in {p.doing}" + (f" at {p.place}" if p.place else "") for p in places
    ]
    undecidable = " Which side is wrong is undecidable: a tie." if tie and not culprits else ""
    return Finding(
        code="DDP400",
        title="deadlock",
        severity="error",
        certainty="proven",
        ranks=tuple(sorted(culprits)),
        places=tuple(places),
        cause=f"the ranks wait for each other for ever: {'; '.join(ways)}.{undecidable}",
        cure=Cure(text="Every rank must call the same collectives in the same order."),
        consequences=case.consequences(),
    )


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
