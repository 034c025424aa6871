"""Tells what is found on stderr: at once while the job goes on, the rest at its end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import named
from ddpdoctor.report import as_text, output
from ddpdoctor.report.gravity import FailOn
from ddpdoctor.report.job import of_job
from ddpdoctor.report.model import Report
from ddpdoctor.report.redaction import redacted
from ddpdoctor.report.words import one_line
from ddpdoctor.run.job import is_terminal


class Teller:
    """Remembers what it has told."""

    def __init__(self, command: Sequence[str], page: output.Page, *, redact: bool) -> None:
        self._command, self._page, self._redact = command, page, redact
        self._told: set[tuple[str, str]] = set()

    def found(self, finding: Finding) -> None:
        """Tell one finding about a job that goes on, if it calls anything wrong."""
        if finding.severity == "info":
            return
        self._told.add(_identity(finding))
        report = self._about(finding)
        self._write(as_text.finding(report, report.findings[0], self._page))

    def stalled(self, finding: Finding) -> None:
        """Tell of a wait that may end in a line, where no line at the foot of a terminal does."""
        if not is_terminal():
            self._write(f"ddpdoctor: {one_line(self._about(finding).findings[0].cause)}\n")

    def went_on(self, finding: Finding) -> None:
        """Take it back."""
        if not is_terminal():
            self._write(f"ddpdoctor: {named(finding.ranks)} came after all\n")

    def withdrawn(self, finding: Finding) -> None:
        """Say that what was told is not so: the job has refuted it."""
        if finding.severity != "info":
            self._told.discard(_identity(finding))
            title = f"{finding.code} {finding.title}"
            self._write(f"ddpdoctor: {title} is withdrawn: what the job did then refutes it\n")

    def conclude(self, report: Report, last_words: Path | None, summary: Path | None) -> None:
        """Tell what has not been told yet, what could not be seen, and a summary.

        `last_words` is where those of the launcher's are that the doctor ended, `summary` where its
        own is of ranks that failed, if they were put aside. Where no error was found, that is told.
        """
        shown, text = self._public(report), ""
        if report.findings and (
            report.exit_code != 0 or FailOn.warning.is_reached(report.severities)
        ):
            known = zip(report.findings, shown.findings, strict=True)
            new = tuple(told for each, told in known if _identity(each) not in self._told)
            text = as_text.render(shown.model_copy(update={"findings": new}), self._page)
        elif shown.not_seen:
            # A job that is well is not spoken of: what is merely of interest is in report.json.
            verdict = shown.verdict if report.failure else ""
            unseen = shown.model_copy(update={"findings": (), "verdict": verdict})
            text = as_text.render(unseen, self._page)
        if summary is not None and not FailOn.error.is_reached(report.severities):
            text = summary.read_text("utf-8", "replace") + text
            summary = None
        for when, file in (("as it was ended", last_words), ("of ranks that failed", summary)):
            if file is not None and not self._redact:
                text += f"what the launcher said {when} (or --verbose): {file}\n"
        self._write(text)

    def _about(self, finding: Finding) -> Report:
        return self._public(of_job("run", [], [finding], subject=self._command))

    def _write(self, text: str) -> None:
        """Nobody may be there to read it: that is no reason to stop watching."""
        with contextlib.suppress(output.OutputError, BrokenPipeError):
            output.write(sys.stderr, text)

    def _public(self, report: Report) -> Report:
        return redacted(report) if self._redact else report


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.code, str(finding.place)
