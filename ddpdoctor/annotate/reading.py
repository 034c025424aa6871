"""What only the source shows: certain for lint, on lines that the ranks have executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ddpdoctor.annotate import real_file
from ddpdoctor.annotate.text import read as parsed
from ddpdoctor.catalog import Cure, Finding
from ddpdoctor.evidence import Evidence, Place, RankEvidence

if TYPE_CHECKING:
    from ddpdoctor.lint.rule import Diagnostic


def executed(evidence: Evidence) -> dict[str, set[int]]:
    """File -> lines of the user's that ranks are known to have come to; the main file first."""
    lines: dict[str, set[int]] = {}
    for rank in evidence.ranks:
        for place in _places(rank):
            lines.setdefault(real_file(place.file), set()).add(place.line)
    return {file: of for file, of in lines.items() if Path(file).is_file()}


def certain(files: Sequence[str]) -> list[Diagnostic]:
    """What lint is certain of in these files: seconds, where they are many."""
    from ddpdoctor.lint.linter import lint  # late: it takes a while, and many jobs want none of it

    return [each for each in lint(files).diagnostics if each.confidence == "certain"]


def unobserved(
    lines: Mapping[str, set[int]], read: Iterable[Diagnostic], found: Iterable[Finding]
) -> list[Finding]:
    """What was read on lines that were executed, where no finding has that code."""
    told = {each.code for each in found}
    return [
        _finding(each)
        for each in read
        if each.code not in told and _was_executed(each, lines.get(each.path, set()))
    ]


def _was_executed(read: Diagnostic, lines: set[int]) -> bool:
    """Whether ranks came to that statement: whoever came to its block's end, came by it."""
    text = parsed(read.path)
    node = text.at(read.line) if text is not None else None
    if text is None or node is None:
        return False
    last = text.block(node)[-1]
    return any(node.lineno <= line <= (last.end_lineno or last.lineno) for line in lines)


def _places(rank: RankEvidence) -> Iterator[Place]:
    for way in rank.ways.values():
        yield from way
    yield from (each.place for each in rank.state_loads if each.place is not None)
    yield from (each.place for each in rank.wrappers if each.place is not None)
    yield from (each.place for each in rank.samplers if each.place is not None)
    yield from (each.place for each in rank.loaders if each.place is not None)
    for training in rank.training.values():
        yield from training.places.values()


def _finding(read: Diagnostic) -> Finding:
    """With the places that its evidence speaks of; it was not observed, and so is a warning."""
    said = tuple(each.message for each in read.related)
    changes = {
        "severity": "warning",
        "cause": f"{read.message}.",
        "cure": Cure(text=read.help or "See the page."),
        "evidence": tuple(note for note in read.notes if not note.startswith(said)),
        "span": None,
    }
    return read.finding().model_copy(update=changes)
