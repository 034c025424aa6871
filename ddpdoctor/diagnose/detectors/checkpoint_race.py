"""DDP501: a rank read a checkpoint while another was writing it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, first_line
from ddpdoctor.evidence import ExceptionRecord, FileEvent, RankEvidence

CURE = Cure(
    text="Write to a temporary file, rename it, and let every rank wait for the outcome.",
    commands=("ddpdoctor explain DDP501",),
)

_SIGNATURE = re.compile(
    r"failed finding central directory|Ran out of input|failed reading file|file read failed|"
    r"Weights only load failed|invalid header or archive is corrupted|is a zip archive|"
    r"unexpected EOF|Invalid argument|invalid load key|pickle data was truncated"
)
"""One race, many messages: which one it is depends on how far the writer had got."""


@dataclass(frozen=True, slots=True)
class TornRead:
    """A failed load of a file, and the save that was under way meanwhile, if it was seen."""

    reader: Raised
    load: FileEvent
    writer: RankEvidence | None
    save: FileEvent | None


def torn_reads(case: Case) -> list[TornRead]:
    """The ranks that a torn read ended, by rank."""
    found = []
    for raised in case.raised:
        loads = [f for f in raised.rank.files if f.action == "load" and f.error]
        if not loads or not _caused_by(raised.exception, loads[-1]):
            continue
        writer, save = _writer(case, raised.rank, loads[-1])
        if save is not None or _SIGNATURE.search(loads[-1].error):
            found.append(TornRead(raised, loads[-1], writer, save))
    return found


def detect(case: Case) -> Iterator[Finding]:
    """Name the readers; the first line is theirs, the second the writer's."""
    torn = torn_reads(case)
    if not torn:
        return
    case.explain(*(each.reader for each in torn))
    yield Finding(
        code="DDP501",
        title="checkpoint-race",
        severity="error",
        certainty="proven" if any(each.save for each in torn) else "evidence",
        ranks=tuple(each.reader.rank.rank for each in torn),
        places=places(torn),
        cause=cause(torn[0]),
        cure=CURE,
        evidence=tuple(told(each) for each in torn),
        consequences=case.consequences(),
    )


def places(torn: list[TornRead]) -> tuple[RankPlace, ...]:
    """Where the readers read, then where the writer wrote."""
    load = RankPlace(
        ranks=tuple(each.reader.rank.rank for each in torn),
        place=torn[0].load.place,
        doing=f"torch.load({Path(torn[0].load.path).name})",
    )
    first = torn[0]
    if first.writer is None or first.save is None:
        return (load,)
    doing = f"torch.save({Path(first.save.path).name})"
    return (load, RankPlace(ranks=(first.writer.rank,), place=first.save.place, doing=doing))


def cause(torn: TornRead) -> str:
    """One sentence: who read what while who wrote it."""
    name, reader = Path(torn.load.path).name, torn.reader.rank.rank
    if torn.writer is None:
        return f"rank {reader} read {name}, which is incomplete: it was read while it was written."
    return f"rank {reader} read {name} while rank {torn.writer.rank} was writing it in place."


def told(torn: TornRead) -> str:
    """The evidence for one reader."""
    line = f"rank {torn.reader.rank.rank}: {first_line(torn.load.error)}"
    if torn.save is None or torn.load.ended is None:
        return line
    into = (torn.load.begun - torn.save.begun) * 1000
    length = (
        f"{(torn.save.ended - torn.save.begun) * 1000:.0f} ms" if torn.save.ended else "unended"
    )
    return f"{line} ({into:.0f} ms into the {length} save)"


def _caused_by(exception: ExceptionRecord | None, load: FileEvent) -> bool:
    """Whether the failed load is this exception, or one that it was raised from."""
    while exception is not None:
        if load.error.startswith(f"{exception.type}: ") and exception.message[:80] in load.error:
            return True
        exception = exception.cause
    return False


def _writer(
    case: Case, reader: RankEvidence, load: FileEvent
) -> tuple[RankEvidence | None, FileEvent | None]:
    """The rank whose save of the same path was under way at some moment of the load."""
    for rank in case.evidence.ranks:
        for save in rank.files:
            if rank is reader or save.action != "save" or save.path != load.path:
                continue
            ended = save.ended if save.ended is not None else float("inf")
            if save.begun < (load.ended or float("inf")) and load.begun < ended:
                return rank, save
    return None, None
