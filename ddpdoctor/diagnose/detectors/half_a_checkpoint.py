"""DDP513: a rank took up what another had just saved in this very run, and found but a part of it.

Seen: it restored, before its first step and without a collective since that save had begun, a file
that another rank of its host wrote in this run and has not read itself; and what it looked for
beside it was not there. That a file on the disk made it resume is concluded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import FileEvent, RankEvidence, named


@detector(precedence=276)
def detect(case: Case) -> Iterator[Finding]:
    """One finding, for the first rank that did so; the others did the same."""
    found = [(each, taken) for each in case.raised if (taken := _taken_up(case, each))]
    if not found:
        return
    case.explain(*(raised for raised, _ in found))
    first, (writer, save, load, missed) = found[0]
    ranks = tuple(raised.rank.rank for raised, _ in found)
    name, part = Path(load.path).name, Path(missed.path).name
    after = (load.begun - save.begun) * 1000
    yield Finding(
        code="DDP513",
        title="resume-on-one-rank",
        severity="error",
        certainty="evidence",
        ranks=ranks,
        places=(
            RankPlace(ranks=ranks, place=load.place, doing=f"load({name})"),
            RankPlace(ranks=(writer.rank,), place=save.place, doing=f"saved {name}"),
            RankPlace(ranks=ranks, place=missed.place, doing=f"looks for {part}"),
            *callers(ranks, load.way, load.place),
        ),
        cause=f"{named(ranks)} resumed from {name}, which rank {writer.rank} had begun to save in "
        f"this run {after:.0f} ms before, and {part} was not there yet. Rank {writer.rank} did not "
        f"read {name}: it began anew.",
        cure=Cure(text="Decide on rank 0 whether to resume, broadcast it, and load on every rank."),
        evidence=(f"{first.exception.type}: {missed.error.partition(': ')[2][:100]}",),
        consequences=case.consequences(),
    )


Taken = tuple[RankEvidence, FileEvent, FileEvent, FileEvent]
"""Who saved, how, what was loaded of it, and what was missed."""


def _taken_up(case: Case, raised: Raised) -> Taken | None:
    rank = raised.rank
    missed = next((f for f in reversed(rank.files) if f.action == "load"), None)
    if missed is None or not missed.error.startswith("FileNotFoundError"):
        return None
    if missed.error.partition(":")[0] != raised.exception.type:
        return None
    for load in rank.files:
        restored = [s for s in rank.state_loads if load.begun < s.time < missed.begun]
        beside = Path(load.path).parent == Path(missed.path).parent
        if load.action != "load" or load.error or load.step or not restored or not beside:
            continue
        for writer, save in _saves(case, rank, load):
            if not any(save.begun < call.begun < missed.begun for call in rank.collectives):
                return writer, save, load, missed
    return None


def _saves(
    case: Case, reader: RankEvidence, load: FileEvent
) -> Iterator[tuple[RankEvidence, FileEvent]]:
    """By ranks of its host that have not read it themselves."""
    for rank in case.evidence.ranks:
        if rank is reader or rank.boot != reader.boot:
            continue
        if any(f.path == load.path and f.action == "load" for f in rank.files):
            continue
        for file in rank.files:
            is_save = file.action in ("save", "replace") and not file.error
            if is_save and file.path == load.path and file.begun < load.begun:
                yield rank, file
