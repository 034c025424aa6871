"""Reports on a job of the user's: one model for `run`, `diagnose` and `attach`, one file a format.

report = RunReport.of("run", [Attempt.of("attempt-0", evidence)], findings, ...)
text = render(report, "text", Page())
"""

from __future__ import annotations

from typing import Literal, get_args

from ddpdoctor.report.model import render as render_told
from ddpdoctor.report.output import Page
from ddpdoctor.report.run import as_json, as_text
from ddpdoctor.report.run.model import Attempt, Mark, RankLine, RunReport

__all__ = ["FORMATS", "Attempt", "Format", "Mark", "RankLine", "RunReport", "render"]

Format = Literal["text", "json", "junit", "markdown", "sarif", "html", "perfetto"]
FORMATS: tuple[Format, ...] = get_args(Format)


def render(report: RunReport, format_: Format, page: Page | None = None) -> str:
    """The report in a format; `page` is what text is laid out for."""
    if format_ == "text":
        return as_text.render(report, page or Page())
    return as_json.render(report) if format_ == "json" else render_told(report.told(), format_)
