"""Where the bug stands that the ranks have shown: the line that lint calls by the same code.

A silent error is proven by what the ranks held; the line that makes it may call nothing that can be
watched (`total += loss`). What lint says of the same files under the same code is that line.
"""

from __future__ import annotations

from pathlib import Path

from ddpdoctor.catalog import Finding, RankPlace
from ddpdoctor.evidence import Place
from ddpdoctor.lint.linter import lint

_CODES = frozenset({"DDP304", "DDP305", "DDP314", "DDP315", "DDP601"})


def pointed(finding: Finding) -> Finding:
    """The finding, with lint's lines first where none of them is among its own."""
    if finding.code not in _CODES:
        return finding
    own = [each.place for each in finding.places if each.place is not None]
    files = list(dict.fromkeys(place.file for place in own if Path(place.file).is_file()))
    said = [each for each in lint(files).diagnostics if each.code == finding.code and not each.cell]
    if not said or {(p.file, p.line) for p in own} & {(each.path, each.line) for each in said}:
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
