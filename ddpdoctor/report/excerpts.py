"""Lines of the user's source, read when a report is made: it can then be shown anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ddpdoctor.evidence import Place

_AROUND = 2
"""Lines that are shown before and after the one that is spoken of."""
_LARGEST_SOURCE = 4 << 20
_LONGEST_LINE = 500
_MOST = 400


class Kept(BaseModel):
    """A part of a report: what a newer doctor has added is no reason not to read the rest."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Excerpt(Kept):
    """Some lines around the one that a finding names."""

    file: str
    line: int
    first: int
    """Number of the first of `lines`."""
    lines: tuple[str, ...]
    cell: int = 0
    """For a notebook: the number of the cell, in which lines then count."""

    @property
    def marked(self) -> str:
        """The line that is spoken of."""
        return self.lines[self.line - self.first]


def excerpts(places: Iterable[Place]) -> tuple[Excerpt, ...]:
    """Of as many places as a report has room for, in their order."""
    sources: dict[str, list[str]] = {}
    found: dict[tuple[str, int], Excerpt] = {}
    for place in places:
        if (place.file, place.line) in found:
            continue
        if place.file not in sources:
            sources[place.file] = _lines_of(place.file)
        if (read := _excerpt(place, sources[place.file])) is not None:
            found[place.file, place.line] = read
            if len(found) == _MOST:
                break
    return tuple(found.values())


def _lines_of(file: str) -> list[str]:
    """The source; nothing where it cannot be read as text."""
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_SOURCE:
            return []
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []


def _excerpt(place: Place, lines: Sequence[str]) -> Excerpt | None:
    if not 0 < place.line <= len(lines) or not lines[place.line - 1].strip():
        return None
    first = max(1, place.line - _AROUND)
    last = min(len(lines), place.line + _AROUND)
    return Excerpt(
        file=place.file,
        line=place.line,
        first=first,
        lines=tuple(line[:_LONGEST_LINE] for line in lines[first - 1 : last]),
    )
