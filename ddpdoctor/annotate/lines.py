"""Where the bug stands that the ranks have shown: the line that lint calls by the same code.

A silent error is proven by what the ranks held; the line that makes it may call nothing that can be
watched (`total += loss`). What lint says of the same files under the same code is that line.
"""

from __future__ import annotations

from ddpdoctor.annotate.naming import PROVEN
from ddpdoctor.annotate.source import Sources
from ddpdoctor.catalog import Cure, Finding, RankPlace
from ddpdoctor.evidence import Place
from ddpdoctor.lint.rule import Diagnostic

_BY_SOME = "DDP406"
_CODES = frozenset({"DDP216", "DDP304", "DDP305", "DDP314", "DDP315", "DDP601"})


def pointed(finding: Finding, sources: Sources) -> Finding:
    """The finding, with lint's lines first where none of them is among its own."""
    if any(each.phase == "forward" for each in finding.places) and _is_unexplained(finding):
        return _called_by_some(finding, sources)
    if finding.code not in _CODES:
        return finding
    own = [each.place for each in finding.places if each.place is not None]
    said = sources.said(finding.code, own)
    seen = {(place.file, place.line) for place in own}
    if met := [each for each in said if (each.path, each.line) in seen]:
        return _comes_of(finding, met)
    if not said:
        return finding
    here = {(place.file, place.function) for place in own}
    # Of several in a file, those in a function that was seen to run.
    said = [each for each in said if (each.path, each.function) in here] or said
    more = tuple(
        RankPlace(
            ranks=finding.ranks,
            place=Place(each.path, each.line, each.function),
            doing=f"by its source: {each.name}",
        )
        for each in said
    )
    return finding.model_copy(update={"places": (*more, *finding.places)})


def _comes_of(finding: Finding, met: list[Diagnostic]) -> Finding:
    """With the lines by which the source explains those that were seen."""
    known = {(at.place.file, at.place.line) for at in finding.places if at.place is not None}
    more = tuple(
        RankPlace(
            ranks=finding.ranks,
            place=Place(each.path, each.line, ""),
            doing=f"by its source: {each.message}",
        )
        for diagnostic in met
        for each in diagnostic.related
        if (each.path, each.line) not in known
    )
    return finding.model_copy(update={"places": (*finding.places, *more)})


def _is_unexplained(finding: Finding) -> bool:
    """A death among ranks that are in DDP's forward, or a deadlock that has no other reason."""
    return finding.title == "rank-died" or (finding.title, finding.code) == ("deadlock", "DDP400")


def _called_by_some(finding: Finding, sources: Sources) -> Finding:
    """Ranks that are in DDP's forward while others died or wait: a forward that only some make.

    gloo aborts a rank that is sent what it did not ask for, or lets a broadcast's root go on, whose
    later ones then meet what the others do; that it was this forward is concluded.
    """
    frames = [frame for each in finding.places for frame in (*each.stack, each.place) if frame]
    said = sources.said(_BY_SOME, frames)
    if len({(each.path, each.line) for each in said}) != 1:
        return finding
    (line,) = said[:1]
    place = Place(line.path, line.line, line.function)
    some = RankPlace(ranks=(), place=place, doing="calls the wrapper, on some ranks only")
    return finding.model_copy(
        update={
            "code": line.code,
            "title": line.name,
            "certainty": "evidence",
            "cause": f"{finding.cause} By the source, {line.message} ({place}): its buffers then "
            "meet another collective of the others.",
            "cure": Cure(text=line.help or finding.cure.text),
            "evidence": (*finding.evidence, *line.notes, *_proven(finding)),
            "places": (some, *finding.places),
        }
    )


def _proven(finding: Finding) -> tuple[str, ...]:
    return (PROVEN,) if (finding.title, finding.certainty) == ("deadlock", "proven") else ()
