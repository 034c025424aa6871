"""One line per finding, as editors and grep like it."""

from __future__ import annotations

from ddpdoctor.lint.report import Report, location


def render(report: Report, colour: bool) -> str:
    """`file:line:column: CODE message [confidence]`."""
    return "".join(
        f"{location(each)}: {each.code} {each.message} [{each.confidence}]\n"
        for each in report.diagnostics
    )
