"""DDP514: every rank makes or clears the same folder, and all but one fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.diagnose.case import Case, Raised
from ddpdoctor.evidence import FileEvent, RankEvidence


def detect(case: Case) -> Iterator[Finding]:
    """Name the ranks that came too late, and the one that had been there."""
    hit = [(each, *found) for each in case.raised if (found := _clash(case, each))]
    if not hit:
        return
    case.explain(*(raised for raised, *_ in hit))
    first, other, event = hit[0]
    ranks = tuple(raised.rank.rank for raised, *_ in hit)
    name = Path(event.path).name
    did = "made" if event.action == "mkdir" else "removed"
    yield Finding(
        code="DDP514",
        title="shared-path-race",
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(
            RankPlace(
                ranks=ranks,
                place=first.exception.place,
                doing=f"raised {first.exception.type}",
            ),
            RankPlace(ranks=(other.rank,), place=event.place, doing=f"{event.action}({name})"),
        ),
        cause=f"rank {other.rank} had {did} the folder {name} when "
        f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))} came to it: every rank "
        "does so for itself.",
        cure=Cure(
            text="Make and clear the run folder on rank 0 alone, and let the others wait for it."
        ),
        evidence=(f"{first.exception.type}: {first.exception.message}",),
        consequences=case.consequences(),
    )


def _clash(case: Case, raised: Raised) -> tuple[RankEvidence, FileEvent] | None:
    """The rank, and what it did in this run, that left nothing to make or to find."""
    kind, message = raised.exception.type, raised.exception.message
    failed = [f for f in raised.rank.files if f.action in ("mkdir", "rmtree") and f.error]
    for other in case.evidence.ranks:
        if other is raised.rank or other.boot != raised.rank.boot:
            continue
        for event in other.files:
            if event.begun > raised.exception.time or event.error:
                continue
            made = event.action == "mkdir" and kind == "FileExistsError"
            if made and any(f.path == event.path for f in failed):
                return other, event
            gone = event.action == "rmtree" and kind in ("FileNotFoundError", "OSError")
            if gone and any(f.path == event.path for f in failed):
                return other, event
            if gone and kind == "FileNotFoundError" and f"'{event.path}/" in message:
                return other, event
    return None
