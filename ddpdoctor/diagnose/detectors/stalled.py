"""DDP400: ranks that wait long for one that is elsewhere. Evidence, never proof: it may come."""

from __future__ import annotations

from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, sides
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.detectors.late import is_stopped, meanwhile
from ddpdoctor.diagnose.waiting import Blocked, held_up
from ddpdoctor.evidence import Evidence, RankEvidence, named

_WORTH_A_WORD = 5.0
"""Seconds of waiting, where the job was ended meanwhile."""
_LONG = 30.0
"""Seconds of waiting that few want; a shorter wait may be a checkpoint or an evaluation."""


@detector(precedence=345, of_absence=True)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that the others wait for, or waited for when the job was ended."""
    if case.failures or case.casualties or case.proven:
        return
    if any(each.title in ("timeout", "key-never-set") for each in case.found):
        return  # so it waited, and gave up; or the others wait for who waits for a key
    ended = _was_ended(case.evidence)
    least = _WORTH_A_WORD if ended else _LONG
    waits = [each for each in held_up(case.evidence) if each.stuck.seen - each.stuck.since > least]
    late = {number for group in {each.waits_for for each in waits} for number in group}
    late -= {each.rank for each in waits}
    slow = [rank for n in sorted(late) if (rank := case.evidence.ranks[n]).pid and rank.groups]
    if slow and not any(rank.fate and rank.fate.exit_code == 0 for rank in slow):
        yield _finding(waits, slow, ended=ended)


def _was_ended(evidence: Evidence) -> bool:
    fates = [rank.fate for rank in evidence.ranks if rank.fate]
    return evidence.asked_to_end or any(fate.signal or fate.killed_by_us for fate in fates)


def _finding(waits: list[Blocked], slow: list[RankEvidence], *, ended: bool) -> Finding:
    now = max(each.stuck.seen for each in waits)
    seconds = max(each.stuck.seen - each.stuck.since for each in waits)
    ranks = tuple(rank.rank for rank in slow)
    places = tuple(meanwhile(rank, rank.stuck or rank.working, now) for rank in slow)
    wait = "had waited" if ended else "wait" if len(waits) > 1 else "waits"
    until = "when the job was ended" if ended else "by now"
    return Finding(
        code="DDP400",
        title="stall",
        severity="warning" if seconds > _LONG else "info",
        certainty="evidence",
        may_pass=True,
        ranks=ranks,
        places=(*places, *sides(waits)),
        cause=f"{named(each.rank for each in waits)} {wait} for {named(ranks)}"
        f"{_whereabouts(places[0], slow[0])}, for {seconds:.0f} s {until}. That is no proof of a "
        "deadlock: it may come.",
        cure=Cure(text=_cure(slow)),
    )


def _cure(slow: list[RankEvidence]) -> str:
    if stopped := " ".join(str(rank.pid) for rank in slow if is_stopped(rank)):
        return f"Let it go on: kill -CONT {stopped}"
    return "Look at what the late rank does there."


def _whereabouts(place: RankPlace, rank: RankEvidence) -> str:
    if is_stopped(rank):
        return ", which is stopped" + (f" since it was at {place.place}" if place.place else "")
    if place.place is None:
        return ""
    if "no sign of life" in place.doing:
        return f", which gives no sign of life since it was at {place.place}"
    return f", {'computing' if rank.stuck is None else 'idle'} at {place.place}"
