"""DDP419: a race in torch's own teardown ends or holds a rank after all its work is done."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import Place, RankEvidence


@detector(precedence=290)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that left their group, or began to exit, and then aborted or never ended."""
    if case.raised or case.casualties or case.deadlock is not None:
        return
    hit = [rank for rank in case.evidence.ranks if _fell(rank)]
    others = [rank for rank in case.evidence.ranks if rank not in hit]
    if not hit or not all(rank.fate and rank.fate.exit_code == 0 for rank in others):
        return
    case.explain(*(each for each in case.died if each.rank in hit))
    ranks = tuple(rank.rank for rank in hit)
    yield Finding(
        code="DDP419",
        title="destroy-with-live-wrapper",
        severity="info",
        certainty="evidence",
        ranks=ranks,
        places=tuple(_places(hit)),
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
    if fate is None:
        return False
    if rank.left is None and rank.exiting is None:
        return rank.leaving is not None and fate.signal == signal.SIGABRT
    return fate.signal in (signal.SIGABRT, signal.SIGALRM) or fate.killed_by_us
