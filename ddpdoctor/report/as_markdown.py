"""A report for an issue, a pull request or a wiki: GitHub's Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ddpdoctor.catalog import Finding
from ddpdoctor.report import words
from ddpdoctor.report.model import Group, Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import markdown_prose, plain_markdown

_MOST = 1000
"""Findings that are told; GitHub shows no page that long."""


def render(report: Report, page: Page | None = None) -> str:
    """The report as one Markdown document."""
    return "\n\n".join(filter(None, _parts(report))) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield f"# ddpdoctor {report.command}"
    yield code(" ".join(report.subject)) if report.subject else ""
    yield plain_markdown(report.verdict)
    yield plain_markdown(report.about)
    yield _list("", report.notes)
    for each in report.findings[:_MOST]:
        yield _finding(report, each)
    more = Counter(f"{each.code} {each.title}" for each in report.findings[_MOST:])
    yield _list("## And more of these", (f"{name}: {n} more" for name, n in more.items()))
    yield _list("## Not seen", report.not_seen)
    for group in report.groups:
        yield _group(group)
    if report.to_do:
        lines = (
            f"- **{code}** {markdown_prose(f'{what} `{command}`')}"
            for code, what, command in report.to_do
        )
        yield "## What to do\n\n" + "\n".join(lines)
    if report.facts:
        facts = table(("fact", "value"), report.facts)
        yield f"<details><summary>Environment</summary>\n\n{facts}\n\n</details>"


def _group(group: Group) -> str:
    if not group.rows:
        return ""
    rows = [[markdown_prose(cell, in_table=True) for cell in row] for row in group.rows]
    for row, state in zip(rows, group.states, strict=False):
        row[1] = f"**{row[1]}**" if state == "bad" else row[1]
    head = f"## {plain_markdown(group.title)}"
    return "\n\n".join(filter(None, (head, markdown_prose(group.note), _rows(group.columns, rows))))


def _finding(report: Report, finding: Finding) -> str:
    head = plain_markdown(f"{finding.code} {finding.title}")
    sure = plain_markdown(words.headline(report, finding))
    parts = [
        f"## {head} ({finding.severity}, {sure})",
        table(words.COLUMNS, words.standing(finding)),
        f"At {plain_markdown(report.where(finding))}:" if finding.span else "",
    ]
    if (excerpt := report.excerpt_of(finding)) is not None:
        marked = (
            f"{'>' if number == excerpt.line else ' '} {number} {line}"
            for number, line in enumerate(excerpt.lines, excerpt.first)
        )
        parts.append(code("\n".join(marked)))
    parts += [
        f"**Cause:** {markdown_prose(finding.cause)}",
        _list("**Evidence:**", finding.evidence),
        _list("**As a consequence:**", finding.consequences),
        f"**Remedy:** {' '.join(map(markdown_prose, words.remedy(finding)))}",
    ]
    return "\n\n".join(filter(None, parts))


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Text in rows and columns; "" without a row."""
    return _rows(columns, [[markdown_prose(cell, in_table=True) for cell in row] for row in rows])


def _rows(columns: Sequence[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _list(title: str, items: Iterable[str]) -> str:
    lines = [f"- {markdown_prose(item)}" for item in items]
    return "\n".join([title, "", *lines]).strip() if lines else ""


def code(text: str) -> str:
    """A block of code, fenced by more backticks than stand in it; no control characters."""
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
