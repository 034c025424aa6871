"""DDP501: a rank read a checkpoint before or while another was writing it.

Where each rank writes a part of its own by one line, and one reads the others', what is missing is
to wait for them: that is DDP407, and was seen as plainly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, first_line
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.diagnose.sharing import handed_over
from ddpdoctor.evidence import ExceptionRecord, FileEvent, RankEvidence

_SIGNATURE = re.compile(
    r"failed finding central directory|Ran out of input|failed reading file|file read failed|"
    r"Weights only load failed|invalid header or archive is corrupted|is a zip archive|"
    r"unexpected EOF|Invalid argument|invalid load key|pickle data was truncated"
)
"""One race, many messages: which one it is depends on how far the writer had got."""
_WHOLE = re.compile(r"Unsupported global|was not an allowed global")
"""What is said of a whole file that holds more than tensors: weights_only refuses it."""


@dataclass(frozen=True, slots=True)
class BadRead:
    """A load that did not give what the writer meant it to give."""

    reader: RankEvidence
    load: FileEvent
    writer: RankEvidence | None
    """The rank that was writing, or was yet to write, the same path; None if nobody was seen."""
    save: FileEvent | None
    raised: Raised | None
    """The exception of a torn read; None if the load went well and gave the previous version."""


def torn_reads(case: Case) -> list[BadRead]:
    """The ranks that a torn read ended, by rank."""
    found = []
    for raised in case.raised:
        loads = [f for f in raised.rank.files if f.action == "load" and f.error]
        if not loads or not _caused_by(raised.exception, loads[-1]):
            continue
        if _found_nothing(raised, loads[-1].path) or _WHOLE.search(loads[-1].error):
            continue
        writer, save = _writer(case, raised.rank, loads[-1])
        if save is not None or _SIGNATURE.search(loads[-1].error):
            found.append(BadRead(raised.rank, loads[-1], writer, save, raised))
    return found


def stale_reads(case: Case) -> list[BadRead]:
    """The ranks that loaded a file before the writer had published what it then loaded itself.

    The n-th load of a path on one rank belongs to the n-th on every other: they run one program. If
    a save comes before it on the writer and after it on a reader, the two read different versions.
    A rank that saves the path itself reads what it has saved; and where one line saves it on
    several ranks, a reader that has got one's version has not got an old one. Which of the two came
    first is known on one host alone: clocks of two are not brought together to the millisecond.
    """
    found = []
    for writer in case.evidence.ranks:
        for save in (f for f in writer.files if f.action in ("save", "replace") and f.ended):
            if save.error:
                continue
            own = _loads(writer, save.path)
            following = next((n for n, load in enumerate(own) if load.begun > save.begun), None)
            if following is None:
                continue
            for reader in case.evidence.ranks:
                loads = _loads(reader, save.path)
                if reader is writer or reader.boot != writer.boot:
                    continue
                if len(loads) <= following or _saves(reader, save.path):
                    continue
                load = loads[following]
                since = loads[following - 1].ended or 0.0 if following else 0.0
                if _another_saved(case, writer, save, since, load.begun):
                    continue
                if load.begun < (save.ended or 0.0) and not load.error:
                    found.append(BadRead(reader, load, writer, save, None))
    return found


@detector(precedence=215)
def detect(case: Case) -> Iterator[Finding]:
    """Name the readers; the first line is theirs, the second the writer's."""
    torn, stale = torn_reads(case), stale_reads(case)
    bad = torn + [each for each in stale if each.reader not in [t.reader for t in torn]]
    if not bad:
        return
    early = [each for each in case.raised if _found_nothing(each, bad[0].load.path)]
    case.explain(*(each.raised for each in torn if each.raised), *early)
    is_part = (bad[0].reader.boot, bad[0].load.path) in handed_over(case.evidence)
    yield Finding(
        code="DDP407" if is_part else "DDP501",
        title="missing-wait" if is_part else "checkpoint-race",
        severity="error",
        certainty="proven" if any(each.save for each in bad) else "evidence",
        ranks=tuple(sorted({each.reader.rank for each in bad} | {e.rank.rank for e in early})),
        places=places(bad),
        cause=cause(bad[0]),
        cure=Cure(
            text="Let every rank wait, in a barrier after the write, before it reads."
            if is_part
            else "Write to a temporary file, rename it, and let every rank wait for the outcome."
        ),
        evidence=tuple(told(each) for each in bad),
        consequences=case.consequences(),
    )


def places(bad: list[BadRead]) -> tuple[RankPlace, ...]:
    """Where the readers read, then where the writer wrote."""
    first = bad[0]
    load = RankPlace(
        ranks=tuple(sorted({each.reader.rank for each in bad})),
        place=first.load.place,
        doing=f"torch.load({Path(first.load.path).name})",
    )
    if first.writer is None or first.save is None:
        return (load,)
    doing = f"{first.save.action}({Path(first.save.path).name})"
    return (load, RankPlace(ranks=(first.writer.rank,), place=first.save.place, doing=doing))


def cause(bad: BadRead) -> str:
    """One sentence: who read what while who wrote it."""
    name, reader = Path(bad.load.path).name, bad.reader.rank
    if bad.writer is None:
        return f"rank {reader} read {name}, which is incomplete: it was read while it was written."
    if bad.raised is None:
        return f"rank {reader} loaded the old {name}: rank {bad.writer.rank} had not saved it yet."
    return f"rank {reader} read {name} while rank {bad.writer.rank} was writing it in place."


def told(bad: BadRead) -> str:
    """The evidence for one reader."""
    rank = f"rank {bad.reader.rank}"
    if bad.save is None or bad.save.ended is None or bad.load.ended is None:
        return f"{rank}: {first_line(bad.load.error)}"
    if bad.raised is None:
        early = (bad.save.ended - bad.load.begun) * 1000
        return f"{rank}: loaded {early:.0f} ms before the save had ended"
    into = (bad.load.begun - bad.save.begun) * 1000
    length = (bad.save.ended - bad.save.begun) * 1000
    return f"{rank}: {first_line(bad.load.error)} ({into:.0f} ms into the {length:.0f} ms save)"


def _loads(rank: RankEvidence, path: str) -> list[FileEvent]:
    return [f for f in rank.files if f.action == "load" and f.path == path]


def _found_nothing(raised: Raised, path: str) -> bool:
    """Whether this rank came to the same race before the writer had even begun."""
    return any(
        f.action == "load" and f.path == path and f.error.startswith("FileNotFoundError")
        for f in raised.rank.files[-1:]
    )


def _saves(rank: RankEvidence, path: str) -> list[FileEvent]:
    return [f for f in rank.files if f.action in ("save", "replace") and f.path == path]


def _another_saved(
    case: Case, writer: RankEvidence, save: FileEvent, since: float, before: float
) -> bool:
    """Whether the line of this save had published the path on another rank in between."""
    others = (rank for rank in case.evidence.ranks if rank is not writer)
    saves = (each for rank in others for each in _saves(rank, save.path) if not each.error)
    return any(since < (each.ended or 0.0) < before for each in saves if each.place == save.place)


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
    """The rank of its host whose save of the path was under way at some moment of the load."""
    for rank in case.evidence.ranks:
        if rank is reader or rank.boot != reader.boot:
            continue
        for save in rank.files:
            if save.action != "save" or save.path != load.path:
                continue
            ended = save.ended if save.ended is not None else float("inf")
            if save.begun < (load.ended or float("inf")) and load.begun < ended:
                return rank, save
    return None, None
