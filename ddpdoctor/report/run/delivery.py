"""Where a report on a job goes: to a file, or to stdout."""

from __future__ import annotations

import sys
from pathlib import Path

from ddpdoctor.options import Colour, ReportFormat
from ddpdoctor.report import output
from ddpdoctor.report.run import RunReport, render
from ddpdoctor.report.run.redaction import redacted


def deliver(
    report: RunReport, format_: ReportFormat, target: Path | None, colour: Colour, *, redact: bool
) -> None:
    """Render a report and write it. Raises OutputError."""
    shown = redacted(report) if redact else report
    if target:
        page = output.Page(colour=colour is Colour.always)
        output.write_file(target, render(shown, format_.value, page))
    else:
        page = output.Page.of(sys.stdout, colour.value)
        output.write(sys.stdout, render(shown, format_.value, page))
