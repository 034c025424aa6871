"""One line per finding, as editors and grep like it."""

from __future__ import annotations

from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line


def render(report: Report, page: Page | None = None) -> str:
    """`file:line:column: CODE cause [certainty]`."""
    return "".join(
        one_line(
            f"{report.where(each) or report.command}: {each.code} {each.cause} [{each.certainty}]"
        )
        + "\n"
        for each in report.findings
    )
