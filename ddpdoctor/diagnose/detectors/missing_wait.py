"""DDP407: a rank reads a file, or writes into a folder, that another has not made yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import made_later
from ddpdoctor.evidence import FileEvent, RankEvidence


@detector(precedence=265)
def detect(case: Case) -> Iterator[Finding]:
    """Name those that came too early, and the line that made it too late."""
    yield from _read(case)
    yield from _saved(case)


def _saved(case: Case) -> Iterator[Finding]:
    """A save into a folder that another rank has made since."""
    early = [
        (raised, save, *found)
        for raised in case.raised
        for save in [f for f in raised.rank.files if f.action == "save"][-1:]
        if save.error and (found := made_later(case.evidence, raised.rank, save))
    ]
    if not early:
        return
    case.explain(*(raised for raised, *_ in early))
    _, save, maker, folder = early[0]
    name, ranks = Path(folder.path).name, tuple(raised.rank.rank for raised, *_ in early)
    yield Finding(
        code="DDP407",
        title="missing-wait",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=save.place, doing=f"saved into {name}"),
            RankPlace(ranks=(maker.rank,), place=folder.place, doing=f"made {name}"),
            *callers(ranks, save.way, save.place),
        ),
        cause=f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))} saved into the "
        f"folder {name} before rank {maker.rank} had made it.",
        cure=Cure(text="Make it on every rank (exist_ok=True), or wait for it in a barrier."),
        evidence=(f"saved {(folder.begun - save.begun) * 1000:.0f} ms before it was made",),
        consequences=case.consequences(),
    )


def _read(case: Case) -> Iterator[Finding]:
    """A read of a file that another rank has written since."""
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
