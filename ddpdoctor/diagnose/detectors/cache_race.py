"""DDP212: every rank builds the same cache file, and reads what another may be writing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import Written, caused_by, is_checkpoint, saved_by_several
from ddpdoctor.evidence import FileEvent, RankEvidence


@detector(precedence=205)
def detect(case: Case) -> Iterator[Finding]:
    """Name the files that several ranks wrote before training, and that some of them read.

    They may have renamed them before: of one temporary name, only the first finds it.
    """
    for written in saved_by_several(case.evidence):
        if any(save.step or is_checkpoint(save) for _, save in written):
            continue
        host, path = written[0][0].boot, written[0][1].path
        files = [(r, file) for r in case.evidence.ranks if r.boot == host for file in r.files]
        renamed = [(rank, file) for rank, file in files if file.source == path]
        names = {path, *(file.path for _, file in renamed)}
        loads = [(r, file) for r, file in files if file.action == "load" and file.path in names]
        failed = [(rank, load) for rank, load in loads if load.error]
        failed += [(rank, late) for rank, late in renamed if _came_too_late(rank, late, renamed)]
        if loads or failed:
            yield _finding(case, written, (failed or loads)[0][1], failed)


def _came_too_late(rank: RankEvidence, rename: FileEvent, renamed: Written) -> bool:
    """Whether another rank had taken the file from under its name."""
    return rename.error.startswith("FileNotFoundError") and any(
        other is not rank and not each.error and each.begun < (rename.ended or math.inf)
        for other, each in renamed
    )


def _finding(case: Case, written: Written, use: FileEvent, failed: Written) -> Finding:
    first = written[0][1]
    name, ranks = Path(first.path).name, tuple(rank.rank for rank, _ in written)
    is_read = use.action == "load"
    found = "read it half written" if is_read else "found that another had renamed it"
    torn = f"; rank {failed[0][0].rank} {found}" if failed else ""
    return Finding(
        code="DDP212",
        title="cache-race",
        severity="error" if failed else "warning",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=first.place, doing=f"wrote {name}"),
            RankPlace(
                ranks=ranks, place=use.place, doing=f"{'read' if is_read else 'renamed'} {name}"
            ),
        ),
        cause=f"{len(ranks)} ranks built {name}, each for itself and in the same place{torn}.",
        cure=Cure(
            text="Build it on rank 0 under a temporary name, rename it, and let the others wait."
        ),
        evidence=tuple(f"rank {rank.rank}: {each.error}" for rank, each in failed),
        consequences=tuple(caused_by(case, first.path)),
    )
