"""Reads the culprit's source, and says why a rank went another way.

`diagnose` knows what the ranks did; the condition that made them do it stands in the source alone.
The one room that knows findings and lint both: a general finding gets the narrower name that the
source gives it, with the line of the decision. What the source does not say stays as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Place


def prepare() -> None:
    """Import what it takes to read: not at the start, where not all have ranks, nor at a proof."""
    _refined([])


def annotate(findings: list[Finding]) -> list[Finding]:
    """The findings, refined by what the source says; without suspicions that it does not share."""
    refined = _refined(findings) if findings else []
    return [each for each in refined if not (each.is_suspicion and each.severity == "info")]


def _refined(findings: list[Finding]) -> list[Finding]:
    from ddpdoctor.annotate.lines import pointed
    from ddpdoctor.annotate.naming import by_its_cause
    from ddpdoctor.annotate.remarks import remarked
    from ddpdoctor.annotate.source import Sources

    given = {real_file(file): file for finding in findings for file in _files(finding)}
    findings = [_renamed(each, real_file) for each in findings]
    sources = Sources(findings)
    refined = []
    for finding in findings:
        for step in (by_its_cause, pointed, remarked):
            try:
                finding = step(finding, sources)
            except Exception as error:  # what was proven stays
                finding = _unread(finding, error)
        refined.append(_renamed(finding, lambda file: given.get(file, file)))
    return refined


def _files(finding: Finding) -> Iterator[str]:
    for at in finding.places:
        yield from (place.file for place in (at.place, *at.stack) if place is not None)


def _renamed(finding: Finding, name: Callable[[str], str]) -> Finding:
    """With other names for its files.

    Read are files under one name each: Python follows links for what it imports, and not for a
    script. Told is the name that ranks gave.
    """

    def there(place: Place) -> Place:
        return replace(place, file=name(place.file))

    places = tuple(
        at.model_copy(
            update={
                "place": there(at.place) if at.place is not None else None,
                "stack": tuple(map(there, at.stack)),
            }
        )
        for at in finding.places
    )
    return finding.model_copy(update={"places": places})


@lru_cache(maxsize=4096)
def real_file(file: str) -> str:
    """A file's name without links; as it is where it says not where it lies."""
    return os.path.realpath(file) if Path(file).is_absolute() else file


def _unread(finding: Finding, error: Exception) -> Finding:
    """It, with a fault of ours in reading the source."""
    note = f"a fault of ours in reading the source, {type(error).__name__}: {error}"
    return finding.model_copy(update={"evidence": (*finding.evidence, note)})
