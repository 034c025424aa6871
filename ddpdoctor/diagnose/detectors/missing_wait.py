"""DDP407: a rank reads a file that another has not written yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import FileEvent, RankEvidence


@detector(precedence=265)
def detect(case: Case) -> Iterator[Finding]:
    """Name the readers, and the line that wrote it too late."""
    writes = _writes(case) if case.raised else {}
    early = [
        (raised, load, *found)
        for raised, load in _not_found(case)
        if (found := _writer(writes, raised, load))
    ]
    if not early:
        return
    case.explain(*(raised for raised, *_ in early))
    _, load, writer, save = early[0]
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
            *callers(ranks, load.way, load.place),
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


Writes = dict[tuple[str, str], list[tuple[RankEvidence, FileEvent]]]
"""What was written in this run, by host and path."""


def _writes(case: Case) -> Writes:
    found: Writes = {}
    for rank in case.evidence.ranks:
        for file in rank.files:
            if file.action in ("save", "replace"):
                found.setdefault((rank.boot, file.path), []).append((rank, file))
    return found


def _writer(
    writes: Writes, reader: Raised, load: FileEvent
) -> tuple[RankEvidence, FileEvent] | None:
    for rank, file in writes.get((reader.rank.boot, load.path), ()):
        if rank is not reader.rank and (file.ended is None or file.ended > load.begun):
            return rank, file
    return None
