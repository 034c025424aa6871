"""What lint has to say at the end, whatever the format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from ddpdoctor.lint.rule import Diagnostic, Trouble

if TYPE_CHECKING:
    from ddpdoctor.report.model import Report as Told


@dataclass(slots=True)
class Report:
    """Findings that are left after selection, suppression and baseline."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    files: int = 0
    fixed: int = 0
    suppressed: int = 0
    """By a comment or the baseline."""
    strict: bool = False
    """Whether a finding that is only likely fails too."""

    @property
    def failing(self) -> list[Diagnostic]:
        """The findings for which the exit code is 1."""
        return [d for d in self.diagnostics if self.strict or d.confidence == "certain"]

    def counts(self) -> Counter[str]:
        """Code -> number of findings."""
        return Counter(each.code for each in self.diagnostics)

    def summary(self) -> str:
        """One line for people."""
        certain = sum(each.confidence == "certain" for each in self.diagnostics)
        likely = len(self.diagnostics) - certain
        parts = [f"{len(self.diagnostics)} finding{'s' * (len(self.diagnostics) != 1)}"]
        if self.diagnostics:
            parts[0] += f" ({certain} certain, {likely} likely)"
        parts[0] += f" in {self.files} file{'s' * (self.files != 1)}"
        if self.fixed:
            parts.append(f"{self.fixed} fixed")
        if self.suppressed:
            parts.append(f"{self.suppressed} suppressed")
        if self.troubles:
            parts.append(f"{len(self.troubles)} not checked")
        fixable = sum(each.fix is not None for each in self.diagnostics)
        if fixable:
            parts.append(f"{fixable} fixable with --fix")
        return ", ".join(parts)


def location(each: Diagnostic) -> str:
    """`file:line:column`, with the cell of a notebook in between."""
    cell = f"cell {each.cell}:" if each.cell else ""
    return f"{each.path}:{cell}{each.line}:{each.column}"


def told(report: Report) -> Told:
    """What the formats that all commands share show of it: a group per file."""
    from ddpdoctor.report.model import Case, Group
    from ddpdoctor.report.model import Report as Told
    from ddpdoctor.report.run.model import Excerpt

    findings, groups = [], []
    for path, group in groupby(report.diagnostics, key=lambda each: each.path):
        cases = []
        for each in group:
            findings.append(each.finding())
            name = f"{each.code} {each.name} line {each.line}"
            cases.append(Case(name, path, findings=(findings[-1],)))
        groups.append(Group(path, cases=cases))
    for trouble in report.troubles:
        case = Case("not checked", trouble.path, skipped=trouble.message)
        groups.append(Group(trouble.path, cases=[case]))
    return Told(
        command="lint",
        verdict=report.summary(),
        findings=findings,
        groups=groups,
        excerpts=[
            Excerpt(file=each.path, line=each.line, first=each.line, lines=(each.excerpt,))
            for each in report.diagnostics
        ],
        spans=[(each.column, each.end_line, each.end_column) for each in report.diagnostics],
        directory=str(Path.cwd()),
    )
