"""DDP400: ranks that gave up waiting for one that was elsewhere, and where that timeout is set.

Evidence, never proof: it may have been about to come.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, first_line, way
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Group, Place, RankEvidence, Stuck, named

_SILENCE = 3.0
"""Seconds without a sign of life, which a rank gives every second."""


@detector(precedence=340, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that the others waited for, and where they were meanwhile."""
    if case.overdue:
        yield _timed_out(case)


def _timed_out(case: Case) -> Finding:
    overdue = case.overdue
    waiting = tuple(each.rank.rank for each in overdue)
    began = max(each.rank.collectives[-1].begun if each.rank.collectives else 0 for each in overdue)
    gave_up = min(each.exception.time for each in overdue)
    slow = [rank for rank in case.evidence.ranks if rank.rank not in waiting]
    group = next(iter(overdue[0].rank.groups.values()), None)
    consequences = case.consequences()
    case.casualties = []
    return Finding(
        code="DDP400",
        title="timeout",
        severity="error",
        certainty="evidence",
        ranks=tuple(rank.rank for rank in slow),
        places=(
            *(meanwhile(rank, _pause(rank, began, gave_up)) for rank in slow),
            *(
                RankPlace(
                    ranks=(each.rank.rank,),
                    place=each.exception.place,
                    doing="gave up waiting",
                    stack=each.exception.frames,
                )
                for each in overdue
            ),
        ),
        cause=f"{named(waiting)} gave up waiting"
        + (f" for {named(rank.rank for rank in slow)}" if slow else "")
        + (f" after {group.timeout:.0f} s, the timeout of the group." if group else "."),
        cure=Cure(
            text="Let no rank keep the others waiting for so long, or give the group a longer "
            "timeout" + _where(group)
        ),
        evidence=(first_line(overdue[0].exception.message),),
        consequences=consequences,
    )


def _where(group: Group | None) -> str:
    made = f" (made at {group.place})" if group is not None and group.place else ""
    return f": init_process_group(timeout=...), and the same to new_group{made}."


def _pause(rank: RankEvidence, began: float, gave_up: float) -> Stuck | None:
    """Where the rank was longest between these two times."""
    known = [*rank.pauses, *(each for each in (rank.stuck, rank.working) if each)]

    def overlap(pause: Stuck) -> float:
        return min(pause.seen, gave_up) - max(pause.since, began)

    return max((p for p in known if overlap(p) > 0), key=overlap, default=None)


def meanwhile(rank: RankEvidence, pause: Stuck | None, now: float = 0.0) -> RankPlace:
    """What a rank did at `pause`, while others waited for it."""
    place = pause.place if pause is not None else None
    if not rank.pid:
        doing = "was not seen from here"
    elif now and now - rank.last_event > _SILENCE:
        place = place or _last_line(rank)
        doing = f"gave no sign of life for {now - rank.last_event:.0f} s: {_held_by(rank)}"
        doing += "; last seen here" if place is not None else ""
    elif pause is None:
        doing = "was elsewhere, and did not stand still"
    elif pause is rank.working or not pause.waiting:
        doing = f"was {'computing' if not pause.issued else 'idle'} here"
    else:
        doing = f"was in {pause.waiting[0].op} here"
    stack = way(pause) if pause is not None else ()
    return RankPlace(ranks=(rank.rank,), place=place, doing=doing, stack=stack)


def is_stopped(rank: RankEvidence) -> bool:
    """Whether the kernel says that it does not run until somebody continues it."""
    return rank.state in ("T", "t")


def _held_by(rank: RankEvidence) -> str:
    """What keeps a rank's other thread from giving a sign of life."""
    if is_stopped(rank):
        return f"the process (pid {rank.pid}) is stopped"
    if rank.state == "D":
        return "it waits in the kernel, as for a disk that does not answer"
    c_code = "C code that holds the GIL"
    return c_code if rank.state else f"{c_code}, or the process is stopped"


def _last_line(rank: RankEvidence) -> Place | None:
    """The user's line that it communicated or stepped at last, as far as one was noted."""
    calls = [call.place for call in rank.collectives[-1:]]
    steps = [each.places.get("step") for each in rank.training.values()]
    return next((place for place in (*calls, *reversed(steps)) if place is not None), None)
