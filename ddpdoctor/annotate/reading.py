"""What only the source shows: certain for lint, on lines that the ranks have executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Evidence, Place, RankEvidence
from ddpdoctor.lint.linter import lint
from ddpdoctor.lint.rule import Diagnostic

_FILES, _BYTES = 64, 1 << 20
"""More than so many files, or larger ones, are not read at the end of a job."""


def unobserved(evidence: Evidence, found: Iterable[Finding]) -> list[Finding]:
    """What lint is certain of on lines that were executed, where no finding has that code."""
    executed: dict[str, set[int]] = {}
    for rank in evidence.ranks:
        for place in _places(rank):
            executed.setdefault(place.file, set()).add(place.line)
    files = [file for file in executed if Path(file).is_file()]
    if len(files) > _FILES or sum(Path(file).stat().st_size for file in files) > _BYTES:
        return []
    told = {each.code for each in found}
    read = (each for each in lint(files).diagnostics if each.confidence == "certain")
    return [
        _finding(each)
        for each in read
        if each.code not in told
        and executed.get(each.path, set()) & set(range(each.line, each.statement[1] + 1))
    ]


def _places(rank: RankEvidence) -> Iterator[Place]:
    """Lines of the user's that a rank is known to have come to."""
    for way in rank.ways.values():
        yield from way
    yield from (each.place for each in rank.state_loads if each.place is not None)
    yield from (each.place for each in rank.wrappers if each.place is not None)
    yield from (each.place for each in rank.samplers if each.place is not None)
    yield from (each.place for each in rank.loaders if each.place is not None)
    for training in rank.training.values():
        yield from training.places.values()


def _finding(read: Diagnostic) -> Finding:
    place = Place(read.path, read.line, read.function)
    return Finding(
        code=read.code,
        title=read.name,
        severity="warning",
        certainty="certain",
        ranks=(),
        places=(RankPlace(ranks=(), place=place, doing="reads so"),),
        cause=f"{read.message}.",
        cure=Cure(text=read.help or "See the page."),
        evidence=read.notes,
    )
