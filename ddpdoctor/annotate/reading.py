"""What only the source shows: certain for lint, on lines that the ranks have executed.

And where what was observed comes from, if nobody saw that: what lint finds likely of such causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ddpdoctor.annotate import real_file
from ddpdoctor.annotate.text import read as parsed
from ddpdoctor.catalog import Cure, Finding, RankPlace
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


def read(files: Sequence[str]) -> list[Diagnostic]:
    """What lint says of these files: seconds, where they are many."""
    from ddpdoctor.lint.linter import lint  # late: it takes a while, and many jobs want none of it

    return [each for each in lint(files).diagnostics if each.severity != "info"]


def unobserved(
    lines: Mapping[str, set[int]], read: Iterable[Diagnostic], found: Iterable[Finding]
) -> list[Finding]:
    """What was read on lines that were executed, where no finding has that code."""
    told = {each.code for each in found}
    return [
        _finding(each)
        for each in read
        if each.confidence == "certain"
        and each.code not in told
        and _was_executed(each.path, each.line, lines.get(each.path, set()))
    ]


def is_unexplained(finding: Finding) -> bool:
    """Whether it may come of something that the source alone tells of."""
    is_standstill = finding.code == "DDP400" and finding.title in _STANDSTILLS
    return is_standstill or finding.code in _COMES_OF


def explained(
    evidence: Evidence, read: Sequence[Diagnostic], found: Sequence[Finding]
) -> list[Finding]:
    """The findings, and below them what was read of where they come from."""
    chained = [_with_its_chain(each, read) for each in found]
    return [*chained, *explaining(evidence, read, found)]


def _with_its_chain(finding: Finding, read: Iterable[Diagnostic]) -> Finding:
    """With the places by which lint knows of the same at the same line."""
    if finding.code not in _COMES_OF:
        return finding
    here = [(real_file(at.place.file), at.place.line) for at in finding.places if at.place]
    same = (each for each in read if each.code == finding.code and (each.path, each.line) in here)
    chain = {(at.path, at.line): at.message for each in same for at in each.related}
    more = (
        RankPlace(ranks=(), place=Place(*place, ""), doing=said)
        for place, said in chain.items()
        if place not in here
    )
    return finding.model_copy(update={"places": (*finding.places, *more)})


def explaining(
    evidence: Evidence, read: Iterable[Diagnostic], found: Sequence[Finding]
) -> list[Finding]:
    """What was read of where the findings come from, where no finding stands there already.

    Of ranks that wait for each other, nobody knows why: what is said of lines where they stood.
    """
    there = ((each.code, each.place) for each in found if each.place is not None)
    told = {(code, real_file(place.file), place.line) for code, place in there}
    sought = {code for each in found for code in _COMES_OF.get(each.code, ())}
    stands_still = any(is_unexplained(each) and each.code == "DDP400" for each in found)
    stood = [each for rank in evidence.ranks if rank.stuck for each in rank.stuck.stack]
    lines: dict[str, set[int]] = {}
    for each in stood:
        lines.setdefault(real_file(each.file), set()).add(each.line)
    return [
        _finding(each)
        for each in read
        if (each.code, each.path, each.line) not in told
        and (each.code in sought or (stands_still and _is_of_waiting(each, lines)))
    ]


_STANDSTILLS = ("deadlock", "stall", "missing-call")
_COMES_OF = {
    "DDP202": ("DDP111", "DDP112"),
    "DDP207": ("DDP206", "DDP213"),
    "DDP217": ("DDP206", "DDP213"),
    "DDP413": ("DDP413",),
}
"""By the code of what was observed: what else in the source may be why."""
_LETS_WAIT = ("DDP307", "DDP4", "DDP511", "DDP514")
"""What has some ranks wait for others."""


def _is_of_waiting(read: Diagnostic, stood: Mapping[str, set[int]]) -> bool:
    """Whether it tells of ranks that wait, and of a statement in which one stood."""
    places = [(read.path, read.line), *((each.path, each.line) for each in read.related)]
    return read.code.startswith(_LETS_WAIT) and any(
        line in stood.get(path, ()) for path, line in places
    )


def _was_executed(path: str, line: int, lines: set[int]) -> bool:
    """Whether ranks came to that statement: whoever came to its block's end, came by it."""
    text = parsed(path)
    node = text.at(line) if text is not None else None
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
