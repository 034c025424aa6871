"""Files that several ranks touch: who wrote which path, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.diagnose.case import Case
from ddpdoctor.evidence import Evidence, FileEvent, RankEvidence

Written = list[tuple[RankEvidence, FileEvent]]

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


def made_later(
    evidence: Evidence, rank: RankEvidence, file: FileEvent
) -> tuple[RankEvidence, FileEvent] | None:
    """Who of its host made the folder of a file, after this rank had failed to find it there.

    That making it succeeded proves that it was not there before.
    """
    folders = {str(each) for each in Path(file.path).parents}
    made = [
        (other, event)
        for other in evidence.ranks
        if other.boot == rank.boot
        for event in other.files
        if event.action == "mkdir" and not event.error and event.path in folders
    ]
    innermost = max(made, key=lambda each: len(each[1].path), default=None)
    if innermost is None or innermost[0] is rank:
        return None
    ended = innermost[1].ended
    return innermost if ended is None or ended > file.begun else None


def is_checkpoint(save: FileEvent) -> bool:
    """Whether a save holds the state of a training, and not data made ready for it."""
    if save.by not in ("torch", "pickle"):
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
