"""One HTML file, complete in itself: no network, no script, everything of the job's escaped."""

from __future__ import annotations

from datetime import UTC
from html import escape
from importlib import resources

from ddpdoctor.catalog import Finding
from ddpdoctor.report.run import words
from ddpdoctor.report.run.lanes import lanes
from ddpdoctor.report.run.model import Attempt, Excerpt, RunReport
from ddpdoctor.report.run.words import Row
from ddpdoctor.report.words import one_line


def render(report: RunReport) -> str:
    """The report as one page."""
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    when = f"{report.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    body = [
        f"<h1>ddpdoctor {report.kind}</h1>",
        f"<p><code>{_text(' '.join(report.command))}</code></p>",
        f"<p>{_text(words.summary(report))}; {when}; ddpdoctor {_text(report.ddpdoctor)}</p>",
        *(_finding(report, finding) for finding in report.findings),
        _list("Not seen", report.not_seen, "h2"),
        *(_attempt(attempt) for attempt in report.attempts),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>ddpdoctor {report.kind}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, body))
        + "\n</body>\n</html>\n"
    )


def _finding(report: RunReport, finding: Finding) -> str:
    excerpt = report.excerpt_of(finding)
    parts = [
        f'<section class="{finding.severity}">',
        f"<h2>{_text(finding.code)} {_text(finding.title)} <small>{finding.severity}, "
        f"{_text(words.headline(report, finding))}</small></h2>",
        _table(words.rows(report, finding)),
        _excerpt(excerpt) if excerpt else "",
        f"<p><b>Cause</b> {_text(finding.cause)}</p>",
        _list("Evidence", finding.evidence, "h3"),
        _list("As a consequence", finding.consequences, "h3"),
        f"<p><b>Remedy</b> {_text(words.remedy(finding))}</p>",
        "</section>",
    ]
    return "\n".join(filter(None, parts))


def _attempt(attempt: Attempt) -> str:
    return "\n".join(
        (
            f"<h2>{_text(attempt.name)}: {attempt.world_size} ranks, {attempt.seconds:.1f} s</h2>",
            lanes(attempt),
        )
    )


def _table(rows: list[Row]) -> str:
    if not rows:
        return ""
    cells = ("".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows)
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"


def _excerpt(excerpt: Excerpt) -> str:
    lines = []
    for number, line in enumerate(excerpt.lines, excerpt.first):
        text = escape("".join(c if c.isprintable() else " " for c in line.expandtabs(4)))
        row = f"{number:>6} {text}"
        lines.append(f"<mark>{row}</mark>" if number == excerpt.line else row)
    return "<pre>" + "\n".join(lines) + "</pre>"


def _list(title: str, items: tuple[str, ...], level: str) -> str:
    if not items:
        return ""
    rows = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<{level}>{title}</{level}>\n<ul>{rows}</ul>"


def _text(text: str) -> str:
    """Somebody else's text: on one line, escaped; what is no character becomes a question mark."""
    return escape(one_line(text).encode("utf-8", "replace").decode("utf-8"))
