"""DDP419, DDP411: a race in torch's own teardown ends or holds a rank after all its work is done.

A rank that destroys its group meets one of them, a rank that never does another.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import ASKED_TO_END, Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, RankEvidence, named, signal_name


@detector(precedence=290)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that left their group, or began to exit, and then aborted or never ended."""
    if case.raised or case.casualties or case.deadlock is not None:
        return
    asked = case.evidence.asked_to_end
    hit = [rank for rank in case.evidence.ranks if _fell(rank) or (asked and _sleeps(rank))]
    others = [rank for rank in case.evidence.ranks if rank not in hit]
    if not hit or not all(_ended_well(rank) or _waited_to_join(rank) for rank in others):
        return
    case.explain(*(each for each in case.died if each.rank in hit))
    kept = [rank for rank in hit if _never_left(rank)]
    for how in sorted({rank.fate.signal for rank in kept if rank.fate and rank.fate.signal}):
        yield _never_destroyed([one for one in kept if one.fate and one.fate.signal == how], how)
    if left := [rank for rank in hit if rank not in kept]:
        yield _raced(left)


def _ended_well(rank: RankEvidence) -> bool:
    return rank.fate is not None and rank.fate.exit_code == 0


def _waited_to_join(rank: RankEvidence) -> bool:
    """Whether it had left, and waited in the next group for who had not, until it was ended."""
    return _has_begun_anew(rank) and rank.fate is not None and rank.fate.killed_by_us


def _has_begun_anew(rank: RankEvidence) -> bool:
    return rank.joining is not None and rank.left is not None and rank.joining > rank.left


def _never_left(rank: RankEvidence) -> bool:
    """Whether it fell as it exited, with a group that nobody had begun to destroy."""
    fell = rank.fate is not None and rank.fate.signal in (signal.SIGABRT, signal.SIGSEGV)
    return fell and rank.exiting is not None and rank.left is None and rank.leaving is None


def _never_destroyed(ranks: list[RankEvidence], how: int) -> Finding:
    """Say what torch 2.13 does: its stack, in a core file, is the one that the page shows.

    Of a segmentation fault no core file was seen.
    """
    numbers = tuple(rank.rank for rank in ranks)
    cure = "Call dist.destroy_process_group() as the last thing on every rank"
    if how == signal.SIGABRT:
        why = (
            "and a thread of gloo's that gives back the last collective's tensors then aborts the "
            "process."
        )
    else:
        why = (
            "whose threads run on meanwhile. One of gloo's is known to abort ranks so; that it was "
            "the one here is not shown."
        )
        cure += "; if it still ends so, a core file names the library whose end it is"
    return Finding(
        code="DDP411",
        title="missing-teardown",
        severity="warning",
        certainty="evidence",
        ranks=numbers,
        places=(
            RankPlace(ranks=numbers, place=None, doing="was exiting, its group not destroyed"),
        ),
        cause=f"{named(numbers)} ended by {signal_name(how)} while Python ended: no line destroyed "
        f"the process group, {why} All work was done before: the results of the run stand.",
        cure=Cure(text=f"{cure}."),
    )


def _raced(ranks: list[RankEvidence]) -> Finding:
    return Finding(
        code="DDP419",
        title="destroy-with-live-wrapper",
        severity="info",
        certainty="evidence",
        ranks=tuple(rank.rank for rank in ranks),
        places=tuple(_places(ranks)),
        cause="torch's teardown of gloo races with its own thread (torch 2.13). All work was done "
        "before: the results of the run stand, and this is not a mistake of the script.",
        cure=Cure(text="Delete the wrapper and the optimizer before destroy_process_group()."),
    )


def _places(hit: list[RankEvidence]) -> Iterator[RankPlace]:
    """Where the group was destroyed: what torch then stands in is no line of the script."""
    by_line: dict[Place | None, list[int]] = {}
    for rank in hit:
        by_line.setdefault(rank.left_place, []).append(rank.rank)
    for place, ranks in by_line.items():
        doing = "had destroyed its group" if place else "had left its group, or was exiting"
        yield RankPlace(ranks=tuple(ranks), place=place, doing=doing)


def _fell(rank: RankEvidence) -> bool:
    """Whether all its work was done, and it aborted or had to be ended: by us, or by an alarm."""
    fate = rank.fate
    if fate is None or rank.exceptions or _has_begun_anew(rank):
        return False
    if _never_left(rank):
        return True
    if rank.left is None and rank.exiting is None:
        if fate.signal == signal.SIGABRT:
            return rank.leaving is not None
        if not _went_silent(rank):
            return False
    if fate.signal in _FROM_OUTSIDE and not fate.killed_by_us:
        return _is_mute(rank, fate.time)
    return fate.signal in (signal.SIGABRT, signal.SIGALRM) or fate.killed_by_us


_FROM_OUTSIDE = (*ASKED_TO_END, signal.SIGKILL)
_MUTE = 10.0
"""Seconds. A line of the script that takes so long lets other threads run, and they write."""
_AT_ONCE = 2.0
_AT_ALL = 1e-3


def _is_mute(rank: RankEvidence, ended: float) -> bool:
    """Whether nothing of the process could run from when it had left its group until it was ended.

    So is one whose main thread holds Python's lock, and waits for what cannot run without it.
    """
    return _went_silent(rank) and ended > rank.last_event + _MUTE


def _sleeps(rank: RankEvidence) -> bool:
    """Whether it is mute while it still is there, and the kernel says that it does nothing."""
    return rank.fate is None and rank.state == "S" and _went_silent(rank)


def _went_silent(rank: RankEvidence) -> bool:
    """Whether it said nothing more: that it has left is written by whatever of it runs next."""
    if rank.exiting is not None:
        return False
    if rank.left is not None:
        return rank.last_event < rank.left + _AT_ONCE
    return rank.leaving is not None and rank.last_event < rank.leaving + _AT_ALL
