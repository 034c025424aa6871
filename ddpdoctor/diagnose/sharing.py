"""Files that several ranks touch: who wrote which path, and when."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.diagnose.case import Case
from ddpdoctor.evidence import Evidence, FileEvent, Place, RankEvidence

Written = list[tuple[RankEvidence, FileEvent]]

_FOUND_NO_FOLDER = re.compile(r"FileNotFoundError|.*Parent directory .* does not exist")
_STATE = re.compile(r"state|model|module|net|ema|optim|sched|scaler|epoch|step|weight|bias", re.I)


def saved_by_several(evidence: Evidence) -> Iterator[Written]:
    """The saves of a path that several ranks of one host wrote, the first save of each of them."""
    found: dict[tuple[str, str], dict[int, tuple[RankEvidence, FileEvent]]] = {}
    for rank in evidence.ranks:
        for file in rank.files:
            if file.action == "save":
                by_rank = found.setdefault((rank.boot, file.path), {})
                by_rank.setdefault(rank.rank, (rank, file))
    for by_rank in found.values():
        if len(by_rank) > 1:
            yield list(by_rank.values())


def handed_over(evidence: Evidence) -> set[tuple[str, str]]:
    """The parts, by host and path, that ranks write for others: each its own, of one line."""
    lines: dict[tuple[str, Place], dict[str, set[int]]] = {}
    read: dict[tuple[str, str], set[int]] = {}
    for rank in evidence.ranks:
        for file in rank.files:
            if file.action == "load":
                read.setdefault((rank.boot, file.path), set()).add(rank.rank)
            elif file.action in ("save", "replace") and file.place is not None:
                of_line = lines.setdefault((rank.boot, file.place), {})
                of_line.setdefault(file.path, set()).add(rank.rank)
    return {
        (boot, path)
        for (boot, _), paths in lines.items()
        if len({min(ranks) for ranks in paths.values()}) > 1
        for path, ranks in paths.items()
        if len(ranks) == 1 and read.get((boot, path), set()) - ranks
    }


def made_later(
    evidence: Evidence, rank: RankEvidence, file: FileEvent
) -> tuple[RankEvidence, FileEvent] | None:
    """Who of its host made the folder that a save of this rank did not find.

    No rank had made or removed it before, and that making it succeeded, after the save had begun,
    proves that it was not there.
    """
    if not _FOUND_NO_FOLDER.match(file.error):
        return None
    folders = {str(each) for each in Path(file.path).parents}
    changed = [
        (other, event)
        for other in evidence.ranks
        if other.boot == rank.boot
        for event in other.files
        if event.action in ("mkdir", "rmtree") and not event.error and event.path in folders
    ]
    innermost = max((event.path for _, event in changed), key=len, default=None)
    first = min(
        (each for each in changed if each[1].path == innermost),
        key=lambda each: each[1].ended or math.inf,
        default=None,
    )
    if first is None or first[0] is rank or first[1].action != "mkdir":
        return None
    return first if (first[1].ended or math.inf) > file.begun else None


def is_checkpoint(save: FileEvent) -> bool:
    """Whether a save holds the state of a training, and not data made ready for it."""
    if save.by not in ("torch", "safetensors", "pickle"):
        return False
    return save.step > 0 or any(_STATE.search(key) for key in save.keys)


def caused_by(case: Case, path: str) -> list[str]:
    """Explain the exceptions of ranks that failed at this path; one line each."""
    hit = [
        each
        for each in case.raised
        if path in each.exception.message
        or any(f.error and path in (f.path, f.source) for f in each.rank.files[-1:])
    ]
    case.explain(*hit)
    return [
        f"rank {each.rank.rank} then raised {each.exception.type}: {each.exception.message[:100]}"
        for each in hit
    ]
