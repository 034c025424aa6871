"""A report for an issue, a pull request or a wiki: GitHub's Markdown, a table per pitfall."""

from __future__ import annotations

from datetime import UTC

from ddpdoctor.catalog import Verdict
from ddpdoctor.report.model import CheckReport, Heading
from ddpdoctor.report.words import (
    KINDS,
    STATUSES,
    advice_sentence,
    count_sentence,
    details,
    plain_markdown,
    what_to_do,
)


def render(report: CheckReport) -> str:
    """The report as one Markdown document."""
    parts = [
        "# ddpdoctor check",
        plain_markdown(
            f"{report.nproc} ranks on {report.backend}, torch {report.torch}, "
            f"Python {report.python}, {report.platform}, ddpdoctor {report.ddpdoctor}, "
            f"{report.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        ),
        "\n\n".join(filter(None, (advice_sentence(report), count_sentence(report)))),
        *(_section(report, heading) for heading in report.pitfalls),
    ]
    if to_do := list(what_to_do(report)):
        lines = (
            f"- **{code}** {plain_markdown(remedy)} `{command}`" for code, remedy, command in to_do
        )
        parts.append("## What to do\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _section(report: CheckReport, heading: Heading) -> str:
    rows = "\n".join(
        _row(verdict, report.broken(heading.code)) for verdict in report.of_pitfall(heading.code)
    )
    return (
        f"## {heading.code} {plain_markdown(heading.title)} ({', '.join(heading.symptoms)})\n\n"
        f"{plain_markdown(heading.summary)}\n\n"
        f"| form | verdict | what it does | what was seen | source |\n"
        f"| --- | --- | --- | --- | --- |\n{rows}"
    )


def _row(verdict: Verdict, broken: Verdict | None) -> str:
    status = STATUSES[verdict.status]
    if verdict.is_problem or verdict.status == "fails":
        status = f"**{status}**"
    cells = (verdict.summary, details(verdict, broken), verdict.source)
    return f"| {KINDS[verdict.kind]} | {status} | {' | '.join(map(plain_markdown, cells))} |"
