"""DDP514: each rank has named the run folder for itself, and looks for files in its own.

Proven: one line made folders of different names on the ranks (by a clock, a random id), and the
file whose absence ended a rank is one that another has written under the name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised, callers
from ddpdoctor.diagnose.detecting import detector
from ddpdoctor.evidence import FileEvent, RankEvidence


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


def _apart(
    case: Case, raised: Raised
) -> tuple[FileEvent, RankEvidence, FileEvent, FileEvent] | None:
    """My folder, who made another by the same line, theirs, and the file that was not there."""
    missing = next((f for f in reversed(raised.rank.files) if f.error and f.action == "load"), None)
    if missing is None or not missing.error.startswith("FileNotFoundError"):
        return None
    if Path(missing.path).name not in raised.exception.message:
        return None  # that was caught, and something else has ended it
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
