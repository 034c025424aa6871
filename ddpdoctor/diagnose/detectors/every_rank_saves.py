"""DDP502: all ranks save their checkpoint to one path."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import Written, caused_by, is_checkpoint, saved_by_several


@detector(precedence=210)
def detect(case: Case) -> Iterator[Finding]:
    """Name the lines; those that save several paths so give one finding."""
    told = set()
    for written in saved_by_several(case.evidence):
        first = written[0][1]
        if all(is_checkpoint(save) for _, save in written) and first.place not in told:
            told.add(first.place)
            yield _finding(case, written)


def _finding(case: Case, written: Written) -> Finding:
    first = written[0][1]
    name, ranks = Path(first.path).name, tuple(rank.rank for rank, _ in written)
    crashed = tuple(caused_by(case, first.path))
    together = _overlap(written)
    return Finding(
        code="DDP502",
        title="every-rank-saves",
        severity="error" if crashed or together else "warning",
        certainty="proven",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=first.place, doing=f"save({name})"),),
        cause=f"{len(ranks)} ranks save to one path, {name}"
        + (", at the same time: what is left may be a mixture." if together else "."),
        cure=Cure(text="Save on rank 0 alone, and let the others wait for the outcome."),
        evidence=tuple(
            f"rank {rank.rank} saved for {(save.ended - save.begun) * 1000:.0f} ms"
            for rank, save in written[:8]
            if save.ended
        ),
        consequences=crashed,
    )


def _overlap(written: Written) -> bool:
    saves = sorted((save for _, save in written), key=lambda save: save.begun)
    return any(then.begun < (save.ended or float("inf")) for save, then in pairwise(saves))
