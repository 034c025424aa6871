"""What no pitfall explains: named by family, with the same ranks, lines and certainty."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Died, Raised, first_line, last_seen, named

_NATIVE = "Look at the last place: a crash of native code, of an extension or of a data loader."
_WHAT_TO_DO: dict[int, str] = {
    signal.SIGKILL: "If nobody sent it, the kernel was out of memory: see dmesg, and use less."
}


def detect(case: Case) -> Iterator[Finding]:
    """One finding for each kind of incident left; exceptions before deaths."""
    case.explain(*(raised := case.raised))
    if faults := [each for each in raised if each.exception.type != "KeyboardInterrupt"]:
        yield _raised(case, faults)
    if case.died:
        case.explain(*(died := case.died))
        yield _died(case, died)


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
                stack=each.exception.frames,
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
        places=tuple(last_seen(each.rank, "was last seen here") for each in died),
        cause=f"{named(each.rank.rank for each in died)} ended by {', '.join(names)}.",
        cure=Cure(text=_WHAT_TO_DO.get(died[0].signal, _NATIVE)),
        consequences=case.consequences(),
    )
