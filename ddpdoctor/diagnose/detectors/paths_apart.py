"""DDP514: each rank has named the run folder, or a file, for itself, and looks for its own.

Proven: one line made folders of different names on the ranks (by a clock, a random id), and the
file whose absence ended a rank is one that another has written under the name of its own. By
evidence: when they came to one line as often, they looked for files whose names have other numbers
(a loss of the rank's own), and one of them is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import FileEvent, RankEvidence

_DIGITS = re.compile(r"\d+")


@detector(precedence=262)
def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that looked in vain, and the line that made the folders."""
    for raised in case.raised:
        found = _apart(case, raised)
        if found is None:
            continue
        mine, other, theirs, missing = found
        case.explain(raised)
        ranks = (raised.rank.rank,)
        yield Finding(
            code="DDP514",
            title="shared-path-race",
            severity="error",
            certainty="proven",
            ranks=ranks,
            places=(
                RankPlace(
                    ranks=(raised.rank.rank, other.rank), place=mine.place, doing="makes a folder"
                ),
                RankPlace(ranks=ranks, place=missing.place, doing=f"reads {_name(missing)}"),
                *callers(ranks, mine.way, mine.place),
            ),
            cause=f"the ranks name the folder each for itself: {_name(mine)} on rank "
            f"{raised.rank.rank}, {_name(theirs)} on rank {other.rank}, which wrote "
            f"{_name(missing)} into its own.",
            cure=Cure(text="Choose the name on rank 0 and broadcast it."),
            consequences=case.consequences(),
        )


@detector(precedence=263)
def files(case: Case) -> Iterator[Finding]:
    """Name the rank that looked in vain, and what the other looked for on the same line."""
    for raised in case.raised:
        found = _files_apart(case, raised)
        if found is None:
            continue
        missing, other, theirs, written, writer = found
        case.explain(raised)
        mine = raised.rank.rank
        yield Finding(
            code="DDP514",
            title="rank-divergent-path",
            severity="error",
            certainty="evidence",
            ranks=(mine,),
            places=(
                RankPlace(ranks=(mine,), place=missing.place, doing=f"reads {_name(missing)}"),
                RankPlace(ranks=(other,), place=theirs.place, doing=f"reads {_name(theirs)}"),
                RankPlace(ranks=(writer,), place=written.place, doing=f"wrote {_name(written)}"),
                *callers((mine,), missing.way, missing.place),
            ),
            cause=f"the ranks name the file each for itself: rank {mine} looks for "
            f"{_name(missing)}, rank {other} for {_name(theirs)}, which rank {writer} wrote.",
            cure=Cure(text="Name it by what is alike on all ranks, or broadcast rank 0's name."),
            consequences=case.consequences(),
        )


def _files_apart(
    case: Case, raised: Raised
) -> tuple[FileEvent, int, FileEvent, FileEvent, int] | None:
    """What was not there, who asked for what instead, and who has written that."""
    missing, ranks = _missing(raised), case.evidence.ranks
    written = {
        file.path: (file, rank.rank)
        for rank in ranks
        for file in rank.files
        if file.action in ("save", "replace") and not file.error
    }
    if missing is None or missing.path in written:
        return None
    number, turn = raised.rank.rank, len(_asked(raised.rank, missing))
    for other in ranks:
        asked = _asked(other, missing)
        if other is raised.rank or len(asked) < turn:
            continue
        theirs = asked[turn - 1]
        is_alike = _DIGITS.sub("", theirs.path) == _DIGITS.sub("", missing.path)
        of_each_rank = _for_any(theirs.path, other.rank) == _for_any(missing.path, number)
        if is_alike and not of_each_rank and theirs.path in written:
            return missing, other.rank, theirs, *written[theirs.path]
    return None


def _asked(rank: RankEvidence, missing: FileEvent) -> list[FileEvent]:
    """What a rank has looked for on the line of what was missing, one after the other."""
    return [each for each in rank.files if each.action == "load" and each.place == missing.place]


def _for_any(path: str, rank: int) -> str:
    return re.sub(rf"(?<!\d){rank}(?!\d)", "", path)


def _missing(raised: Raised) -> FileEvent | None:
    """The file whose absence has ended a rank."""
    missing = next((f for f in reversed(raised.rank.files) if f.error and f.action == "load"), None)
    if missing is None or not missing.error.startswith("FileNotFoundError"):
        return None
    if Path(missing.path).name not in raised.exception.message:
        return None  # that was caught, and something else has ended it
    return missing


def _apart(
    case: Case, raised: Raised
) -> tuple[FileEvent, RankEvidence, FileEvent, FileEvent] | None:
    """My folder, who made another by the same line, theirs, and the file that was not there."""
    missing = _missing(raised)
    if missing is None:
        return None
    for mine in raised.rank.files:
        if mine.action != "mkdir" or not Path(missing.path).is_relative_to(mine.path):
            continue
        inside = Path(missing.path).relative_to(mine.path)
        for other in case.evidence.ranks:
            for theirs in other.files:
                same_line = theirs.action == "mkdir" and theirs.place == mine.place
                if same_line and theirs.path != mine.path and other is not raised.rank:
                    wanted = str(Path(theirs.path) / inside)
                    if any(
                        f.path == wanted and f.action in ("save", "replace") for f in other.files
                    ):
                        return mine, other, theirs, missing
    return None


def _name(file: FileEvent) -> str:
    return Path(file.path).name
