"""One line per finding, as editors and grep like it."""

from __future__ import annotations

from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line


def render(report: Report, page: Page | None = None) -> str:
    """`file:line:column: CODE cause [certainty]`, how a job failed, what could not be seen."""
    told = [
        f"{report.where(each) or report.command}: {each.code} {each.cause} [{each.certainty}]"
        for each in report.findings
    ]
    told += [f"{report.command}: {report.failure}"] if report.failure else []
    told += [f"{report.command}: not seen: {why}" for why in report.not_seen]
    return "".join(f"{one_line(line)}\n" for line in told)
