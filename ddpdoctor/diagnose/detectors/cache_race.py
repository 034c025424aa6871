"""DDP212: every rank builds the same cache file, and reads what another may be writing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import Written, caused_by, is_checkpoint, saved_by_several
from ddpdoctor.evidence import FileEvent


@detector(precedence=205)
def detect(case: Case) -> Iterator[Finding]:
    """Name the files that several ranks wrote before training, and that some of them read."""
    for written in saved_by_several(case.evidence):
        if any(save.step or is_checkpoint(save) for _, save in written):
            continue
        loads = [
            (rank, file)
            for rank in case.evidence.ranks
            for file in rank.files
            if file.action == "load" and file.path == written[0][1].path
        ]
        if loads:
            failed = [(rank.rank, load) for rank, load in loads if load.error]
            yield _finding(case, written, loads[0][1], failed)


def _finding(
    case: Case, written: Written, load: FileEvent, failed: list[tuple[int, FileEvent]]
) -> Finding:
    first = written[0][1]
    name, ranks = Path(first.path).name, tuple(rank.rank for rank, _ in written)
    torn = f"; rank {failed[0][0]} read it half written" if failed else ""
    return Finding(
        code="DDP212",
        title="cache-race",
        severity="error" if failed else "warning",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=first.place, doing=f"wrote {name}"),
            RankPlace(ranks=ranks, place=load.place, doing=f"read {name}"),
        ),
        cause=f"{len(ranks)} ranks built {name}, each for itself and in the same place{torn}.",
        cure=Cure(
            text="Build it on rank 0 under a temporary name, rename it, and let the others wait."
        ),
        evidence=tuple(f"rank {rank}: {each.error}" for rank, each in failed),
        consequences=tuple(caused_by(case, first.path)),
    )
