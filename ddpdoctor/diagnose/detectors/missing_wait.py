"""DDP407: a rank reads a file that another has not written yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.evidence import FileEvent, RankEvidence


def detect(case: Case) -> Iterator[Finding]:
    """Name the readers, and the line that wrote it too late."""
    early = [(each, load, *_writer(case, each, load)) for each, load in _not_found(case)]
    early = [each for each in early if each[3] is not None]
    if not early:
        return
    case.explain(*(raised for raised, *_ in early))
    _, load, writer, save = early[0]
    assert save is not None
    assert writer is not None
    name, ranks = Path(load.path).name, tuple(raised.rank.rank for raised, *_ in early)
    yield Finding(
        code="DDP407",
        title="missing-wait",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=load.place, doing=f"read {name}"),
            RankPlace(ranks=(writer.rank,), place=save.place, doing=f"wrote {name}"),
        ),
        cause=f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))} read {name} "
        f"before rank {writer.rank} had written it.",
        cure=Cure(text="Let every rank wait, in a barrier after the write, before it reads."),
        evidence=(f"read {(save.begun - load.begun) * 1000:.0f} ms before the write began",)
        if save.begun > load.begun
        else (),
        consequences=case.consequences(),
    )


def _not_found(case: Case) -> Iterator[tuple[Raised, FileEvent]]:
    for raised in case.raised:
        loads = [f for f in raised.rank.files if f.action == "load"]
        if loads and loads[-1].error.startswith("FileNotFoundError"):
            yield raised, loads[-1]


def _writer(
    case: Case, reader: Raised, load: FileEvent
) -> tuple[RankEvidence | None, FileEvent | None]:
    for rank in case.evidence.ranks:
        for file in rank.files:
            later = file.ended is None or file.ended > load.begun
            written = file.action in ("save", "replace") and file.path == load.path and later
            if written and rank is not reader.rank and rank.boot == reader.rank.boot:
                return rank, file
    return None, None
