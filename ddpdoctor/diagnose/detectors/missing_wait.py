"""DDP407: a rank reads a file, or writes into a folder, that another has not made yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import made_later
from ddpdoctor.evidence import FileEvent, RankEvidence, named

Early = tuple[Raised, FileEvent, RankEvidence, FileEvent]
"""Who came too early and with what, and who made it then and how."""


@detector(precedence=265)
def detect(case: Case) -> Iterator[Finding]:
    """Name those that came too early, and the line that made it too late."""
    writes = _writes(case) if case.raised else {}
    read: list[Early] = [
        (raised, load, *found)
        for raised, load in _not_found(case)
        if (found := _writer(writes, raised, load))
    ]
    if read:
        cure = "Let every rank wait, in a barrier after the write, before it reads."
        yield _finding(case, read, ("read", "wrote", "written"), cure)
    saved: list[Early] = [
        (raised, save, *found)
        for raised in case.raised
        for save in [f for f in raised.rank.files if f.action in ("save", "replace")][-1:]
        if save.error and (found := made_later(case.evidence, raised.rank, save))
    ]
    if saved:
        cure = "Make it on every rank (exist_ok=True), or wait for it in a barrier."
        yield _finding(case, saved, ("saved into", "made", "made"), cure)


def _finding(case: Case, early: list[Early], verbs: tuple[str, str, str], cure: str) -> Finding:
    case.explain(*(raised for raised, *_ in early))
    _, use, maker, making = early[0]
    used, made, been_made = verbs
    name, ranks = Path(making.path).name, tuple(raised.rank.rank for raised, *_ in early)
    by = (making.begun - use.begun) * 1000
    return Finding(
        code="DDP407",
        title="missing-wait",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=use.place, doing=f"{used} {name}"),
            RankPlace(ranks=(maker.rank,), place=making.place, doing=f"{made} {name}"),
            *callers(ranks, use.way, use.place),
        ),
        cause=f"{named(ranks)} {used} {name} before rank {maker.rank} had {been_made} it.",
        cure=Cure(text=cure),
        evidence=(f"{used} it {by:.0f} ms before that began",) if by > 0 else (),
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
