"""Where something is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ddpdoctor.evidence.checking import checked


@dataclass(frozen=True, slots=True)
@checked
class Place:
    """A line of somebody's source."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line}"
