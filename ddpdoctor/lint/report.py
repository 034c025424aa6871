"""What lint has to say at the end, whatever the format."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ddpdoctor.lint.rule import Diagnostic, Trouble
from ddpdoctor.report.words import count

if TYPE_CHECKING:
    from ddpdoctor.report.model import Report as Told

_PATHS = 8
"""That are told of those that were asked for."""
_CUT = "what it runs is too long to be followed to its end; what comes late may have bugs unseen"


@dataclass(slots=True)
class Report:
    """Findings that are left after selection, suppression and baseline."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    """Files that are too long to have been followed to their end."""
    paths: tuple[str, ...] = ()
    """What was to be looked at, as it was asked for."""
    files: int = 0
    fixed: int = 0
    suppressed: int = 0
    """By a comment or the baseline."""

    def counts(self) -> Counter[str]:
        """Code -> number of findings."""
        return Counter(each.code for each in self.diagnostics)

    def summary(self) -> str:
        """One line for people."""
        certain = sum(each.confidence == "certain" for each in self.diagnostics)
        likely = len(self.diagnostics) - certain
        sure = f" ({certain} certain, {likely} likely)" if self.diagnostics else ""
        found = count(len(self.diagnostics), "finding")
        fixable = sum(each.fix is not None for each in self.diagnostics)
        others = {
            "fixed": self.fixed,
            "suppressed": self.suppressed,
            "not checked": len(self.troubles),
            "checked in part": len(self.cut),
            "fixable with --fix": fixable,
        }
        return ", ".join(
            [
                f"{found}{sure} in {count(self.files, 'file')}",
                *(f"{n} {what}" for what, n in others.items() if n),
            ]
        )

    def told(self) -> Told:
        """What every format shows of it."""
        from ddpdoctor.report.excerpts import Excerpt
        from ddpdoctor.report.model import Report as Told

        more = len(self.paths) > _PATHS
        lines = {(each.path, each.cell, each.line): each.excerpt for each in self.diagnostics}
        return Told(
            command="lint",
            subject=("ddpdoctor", "lint", *self.paths[:_PATHS], *(["…"] if more else [])),
            versions=f"Python {sys.version.split()[0]}",
            verdict=self.summary(),
            findings=tuple(each.finding() for each in self.diagnostics),
            not_seen=(
                *(f"{each.path}: {each.message}" for each in self.troubles),
                *(f"{path}: {_CUT}" for path in self.cut),
            ),
            excerpts=tuple(
                Excerpt(file=path, cell=cell, line=line, first=line, lines=(text,))
                for (path, cell, line), text in lines.items()
            ),
            directory=str(Path.cwd()),
            data={"files": self.files, "fixed": self.fixed, "suppressed": self.suppressed},
        )
