"""DDP105, DDP118: ranks that wait before the first collective for others, and why these stay away.

Also where all have come and do not meet: told after much longer than that takes.

A rank that is on its way is no finding: it is told on the status line, and comes. An error is told
where it is proven that some can never come, where those that waited gave up, or where nothing was
seen of a rank for much longer than its launcher takes to start it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.messages import MEETS_OLD_ADDRESSES, OLD_ADDRESSES
from ddpdoctor.diagnose.joining import Gathering, gathering, state
from ddpdoctor.evidence import Evidence, Place, RankEvidence, named

_OVERDUE = 90.0
"""Seconds that no launcher takes from its first rank to its last."""
_LATE = 300.0
"""Seconds from which on a rank that is on its way is worth a word."""
_PATIENT = 15.0
"""Seconds that somebody waits who has reason to."""
_MEET_AGAIN = 30.0
"""Seconds within which ranks meet that were started again, once all of them have come."""
_NO_CONNECTION = "The connections between them may not come up."
_PORT = "MASTER_PORT"


@detector(precedence=306, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Only where no failure says more than that the wait for the others was given up."""
    found = gathering(case.evidence)
    gave_up = [each for each in case.raised if _gave_up(each)]
    if found is None or "DDP114" in case.told or len(gave_up) < len(case.failures):
        return
    proven = case.deadlock is not None
    if _ended_well(found) or (case.proven is not None and not proven):
        return
    finding = _finding(found, proven=proven, is_over=_is_over(found) or bool(gave_up))
    if finding is None and found.all_wait:
        finding = _not_met(found, case.evidence)
    if finding is None and case.evidence.asked_to_end and _want_more_than_launched(found):
        finding = _too_few(found, proven=False)
    if finding is not None:
        case.explain(*gave_up, *([case.deadlock] if case.deadlock is not None else []))
        yield finding


def _finding(found: Gathering, *, proven: bool, is_over: bool) -> Finding | None:
    """The first that fits."""
    if all(rank.unhosted for rank in found.tried):
        return _unhosted(found, proven=proven)
    if len(found.parties) > 1:
        return _apart(found, proven=proven)
    if found.ended and not found.late:
        return _without_the_ended(found, proven=proven)
    if found.started and found.started < found.world_size and found.all_have_started:
        return _too_few(found, proven=proven)
    waited = found.now - found.since
    if _want_more_than_launched(found) and (is_over or waited > _OVERDUE):
        return _too_few(found, proven=False)
    if found.unseen and not found.late and (is_over or waited > _OVERDUE):
        return _unseen(found)
    if found.late and waited > _LATE:
        return _late(found)
    return None


def _want_more_than_launched(found: Gathering) -> bool:
    """Whether all have come of whom the launcher speaks, and these ask for more."""
    return len(found.tried) >= found.launched < found.world_size


def _unhosted(found: Gathering, *, proven: bool) -> Finding:
    set_at = _set_at(found.tried, _PORT)
    return Finding(
        code="DDP118",
        title="ranks-meet-nowhere",
        severity="error",
        certainty="proven" if proven else "evidence",
        ranks=_numbers(found.tried),
        places=(*_told(found.tried, set_at, "sets another port"), *_waiting(found)),
        cause=f"{named(_numbers(found.tried))} ask for the store at {found.tried[0].meeting}, and "
        "nobody hosts it: torchrun hosts it at the port that it has put into MASTER_PORT.",
        cure=Cure(text="Do not set MASTER_PORT under torchrun: take the one that it has set."),
    )


def _apart(found: Gathering, *, proven: bool) -> Finding:
    parties = found.parties
    by_port = len({rank.meeting for rank in found.tried}) > 1
    ways = "; ".join(
        f"{named(_numbers(party))} at {party[0].meeting or 'a store'} for {party[0].wanted} ranks"
        for party in parties
    )
    set_at = _set_at(found.tried, _PORT if by_port else "WORLD_SIZE")
    cure = "Choose the port once, in the process that starts the ranks, and hand it to all of them."
    if not by_port:
        cure = "Give every rank the same world size: take it from the launcher."
    tie = len(parties[0]) == len(parties[-1])
    return Finding(
        code="DDP118" if by_port else "DDP105",
        title="ranks-meet-nowhere" if by_port else "wrong-world-size",
        severity="error",
        certainty="proven" if proven else "evidence",
        ranks=_numbers(found.tried if tie else parties[-1]),
        places=(
            *_told(found.tried, set_at, "chooses where this rank meets the others"),
            *(
                RankPlace(
                    ranks=_numbers(party),
                    place=party[0].joining_place,
                    doing=f"waits at {party[0].meeting} for {party[0].wanted} ranks",
                )
                for party in parties
            ),
        ),
        cause=f"the ranks wait for each other at different places: {ways}.",
        cure=Cure(text=cure),
    )


def _without_the_ended(found: Gathering, *, proven: bool) -> Finding:
    gone = _numbers(found.ended)
    return Finding(
        code="DDP105",
        title="wrong-world-size",
        severity="error",
        certainty="proven" if proven else "evidence",
        ranks=gone,
        places=(
            *(
                RankPlace(ranks=(rank.rank,), place=_seen(rank), doing="ended without joining")
                for rank in found.ended[:8]
            ),
            *_waiting(found),
        ),
        cause=f"{named(gone)} ended without coming to init_process_group, and "
        f"{named(_numbers(found.tried))} wait{_s(found.tried)} for it there.",
        cure=Cure(text="Let every process that is started join, or count only those that do."),
    )


def _too_few(found: Gathering, *, proven: bool) -> Finding:
    first = found.tried[0]
    launcher = first.launcher or "the launcher"
    count = found.started or found.launched
    started = f"{launcher} has started {count} process{'es' * (count > 1)}"
    spawned = [RankPlace(ranks=(), place=first.started_at, doing=f"starts {count}")]
    set_at = _set_at(found.tried, "WORLD_SIZE")
    come = {*_numbers(found.tried)}
    return Finding(
        code="DDP105",
        title="wrong-world-size",
        severity="error",
        certainty="proven" if proven else "evidence",
        ranks=tuple(rank for rank in range(found.world_size) if rank not in come),
        places=(
            *_told(found.tried, set_at, "says how many there are"),
            *_waiting(found),
            *(spawned if first.started_at is not None else []),
        ),
        cause=f"{started}, and init_process_group waits for {found.world_size}: no more will come.",
        cure=Cure(
            text="Take the world size from the launcher (int(os.environ['WORLD_SIZE']))"
            if launcher == "torchrun"
            else "Start as many processes as the world size says: one number for both."
        ),
    )


def _unseen(found: Gathering) -> Finding:
    tried = _numbers(found.tried)
    return Finding(
        code="DDP105",
        title="wrong-world-size",
        severity="error",
        certainty="evidence",
        ranks=found.unseen,
        places=_waiting(found),
        cause=f"{len(tried)} of {found.world_size} ranks came to init_process_group and waited "
        f"{found.now - found.since:.0f} s: {named(found.unseen)} did not, and nothing was seen of "
        f"{'it' if len(found.unseen) == 1 else 'them'}.",
        cure=Cure(text="Start as many processes as the world size says, through one launcher."),
    )


def _late(found: Gathering) -> Finding:
    late = _numbers(found.late)
    return Finding(
        code="DDP100",
        title="late-to-join",
        severity="warning",
        certainty="evidence",
        ranks=late,
        places=(
            *(
                RankPlace(ranks=(rank.rank,), place=_seen(rank), doing=state(rank))
                for rank in found.late[:8]
            ),
            *_waiting(found),
        ),
        cause=f"{named(_numbers(found.tried))} have waited for {found.now - found.since:.0f} s in "
        f"init_process_group: {named(late)} is still on its way.",
        cure=Cure(text="Join first, and work afterwards; or join with a longer timeout."),
    )


def _not_met(found: Gathering, evidence: Evidence) -> Finding | None:
    """All have come, and wait for longer than meeting takes."""
    waited = found.now - max(rank.joining or 0.0 for rank in found.tried)
    again = bool(evidence.attempt) and found.tried[0].launcher == "torchrun"
    least = _MEET_AGAIN if again else _LATE
    if waited <= (_PATIENT if again and evidence.asked_to_end else least):
        return None
    ranks = _numbers(found.tried)
    return Finding(
        code="DDP400" if again else "DDP100",
        title=MEETS_OLD_ADDRESSES.title if again else "all-there-and-not-met",
        severity="error" if again else "warning",
        certainty="evidence",
        ranks=ranks,
        places=_waiting(found),
        cause=f"{named(ranks)} have all come to init_process_group, and for {waited:.0f} s have "
        f"not met there. {f'Probably {OLD_ADDRESSES}' if again else _NO_CONNECTION}",
        cure=Cure(
            text=MEETS_OLD_ADDRESSES.cure
            if again
            else "Try whether they can reach each other: ddpdoctor probe, under the same launcher."
        ),
    )


def _told(ranks: tuple[RankEvidence, ...], place: Place | None, doing: str) -> list[RankPlace]:
    return [RankPlace(ranks=_numbers(ranks), place=place, doing=doing)] if place is not None else []


def _waiting(found: Gathering) -> tuple[RankPlace, ...]:
    first = found.tried[0]
    place = first.joining_place or (first.stuck.place if first.stuck is not None else None)
    numbers = _numbers(found.tried)
    return (RankPlace(ranks=numbers, place=place, doing="waits in init_process_group"),)


def _seen(rank: RankEvidence) -> Place | None:
    seen = rank.stuck or rank.working
    return seen.place if seen is not None else None


def _set_at(ranks: tuple[RankEvidence, ...], name: str) -> Place | None:
    return next((rank.set_at[name] for rank in ranks if name in rank.set_at), None)


def _numbers(ranks: tuple[RankEvidence, ...]) -> tuple[int, ...]:
    return tuple(rank.rank for rank in ranks)


def _s(ranks: tuple[RankEvidence, ...]) -> str:
    return "s" if len(ranks) == 1 else ""


def _gave_up(raised: Raised) -> bool:
    return raised.exception.type == "DistStoreError" and not raised.rank.groups


def _is_over(found: Gathering) -> bool:
    """Whether those that waited have been ended, and not by somebody who would not wait at all."""
    return all(r.fate is not None for r in found.tried) and found.now - found.since > _PATIENT


def _ended_well(found: Gathering) -> bool:
    return any(rank.fate is not None and rank.fate.exit_code == 0 for rank in found.tried)
