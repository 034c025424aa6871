"""Reports on a job of the user's: one model for `run`, `diagnose` and `attach`, one file a format.

report = RunReport.of("run", [Attempt.of("attempt-0", evidence)], findings, ...)
text = render(report, "text", Page())
"""

from __future__ import annotations

from typing import Literal, get_args

from ddpdoctor.report.output import Page
from ddpdoctor.report.run.model import Attempt, Mark, RankLine, RunReport

__all__ = ["FORMATS", "Attempt", "Format", "Mark", "RankLine", "RunReport", "render"]

Format = Literal["text", "json", "junit", "markdown", "sarif", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)


def render(report: RunReport, format_: Format, page: Page | None = None) -> str:
    """The report in a format; `page` is what text is laid out for."""
    if format_ == "text":
        from ddpdoctor.report.run import as_text

        return as_text.render(report, page or Page())
    if format_ == "json":
        from ddpdoctor.report.run.as_json import render
    elif format_ == "junit":
        from ddpdoctor.report.run.as_junit import render
    elif format_ == "markdown":
        from ddpdoctor.report.run.as_markdown import render
    elif format_ == "sarif":
        from ddpdoctor.report.run.as_sarif import render
    else:
        from ddpdoctor.report.html import render
    return render(report)
