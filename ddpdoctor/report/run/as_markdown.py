"""A report for an issue, a pull request or a wiki: GitHub's Markdown, a section per finding."""

from __future__ import annotations

from datetime import UTC

from ddpdoctor.catalog import Finding
from ddpdoctor.report.run import words
from ddpdoctor.report.run.model import RunReport
from ddpdoctor.report.run.words import Row
from ddpdoctor.report.words import plain_markdown


def render(report: RunReport) -> str:
    """The report as one Markdown document."""
    parts = [
        f"# ddpdoctor {report.kind}",
        code(" ".join(report.command)),
        plain_markdown(
            f"{words.summary(report)}; ddpdoctor {report.ddpdoctor}, "
            f"{report.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        ),
        *(_finding(report, finding) for finding in report.findings),
    ]
    if report.not_seen:
        parts.append(_list("## Not seen", report.not_seen))
    for attempt in report.attempts:
        rows = _table(words.fates(attempt.ranks), "fate")
        parts.append(f"## {plain_markdown(words.launch(report, attempt))}\n\n{rows}")
    return "\n\n".join(filter(None, parts)) + "\n"


def _finding(report: RunReport, finding: Finding) -> str:
    head = plain_markdown(f"{finding.code} {finding.title}")
    parts = [
        f"## {head} ({finding.severity}, {plain_markdown(words.headline(report, finding))})",
        _table(words.rows(report, finding), "waits"),
    ]
    if (excerpt := report.excerpt_at(finding.place)) is not None:
        marked = (
            f"{'>' if number == excerpt.line else ' '} {number} {line}"
            for number, line in enumerate(excerpt.lines, excerpt.first)
        )
        parts.append(code("\n".join(marked)))
    parts.append(f"**Cause:** {plain_markdown(finding.cause)}")
    if finding.evidence:
        parts.append(_list("**Evidence:**", finding.evidence))
    if finding.consequences:
        parts.append(_list("**As a consequence:**", finding.consequences))
    parts.append(f"**Remedy:** {plain_markdown(words.remedy(finding))}")
    return "\n\n".join(filter(None, parts))


def _table(rows: list[Row], last: str) -> str:
    if not rows:
        return ""
    lines = [f"| ranks | line | function | doing | {last} |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(map(plain_markdown, row))} |" for row in rows]
    return "\n".join(lines)


def _list(title: str, items: tuple[str, ...]) -> str:
    return "\n".join([title, "", *(f"- {plain_markdown(item)}" for item in items)])


def code(text: str) -> str:
    """A block of code, fenced by more backticks than stand in it; no control characters."""
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
