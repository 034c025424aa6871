"""The report that people open: one file, no network, and everything of the job's inert.

Its one script is ours, allowed by its hash. It zooms, searches and copies; without it the page
tells all the same.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator
from importlib import resources
from itertools import islice, zip_longest

from ddpdoctor.catalog import Finding
from ddpdoctor.report import as_markdown, words
from ddpdoctor.report.as_html.lanes import lanes
from ddpdoctor.report.as_html.markup import items, prose, seconds, source, table, text
from ddpdoctor.report.as_html.story import story
from ddpdoctor.report.as_html.training import training
from ddpdoctor.report.gravity import gravest_first
from ddpdoctor.report.lives import Attempt
from ddpdoctor.report.model import Group, Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import count

_MOST_FINDINGS = 200
"""That are told in full; the others are counted."""
_OPEN = 3
_ISSUE_FINDINGS, _ISSUE_LENGTH = 10, 60_000
"""GitHub takes 65 536 characters."""
_MOST_ROWS = 400
_SENTENCE = re.compile(r"^[a-z](?=[a-z]* [a-z\d`])")
"""The first letter of what begins with a word, and with no name as in "barrier #10"."""
_MANY_RANKS = 8
_FOLDED = 20
"""More rows than this, none of them bad, are shown when they are asked for."""


def render(report: Report, page: Page | None = None) -> str:
    """The report as one page, the gravest finding first."""
    report = report.model_copy(update={"findings": tuple(gravest_first(report.findings))})
    script, style = _asset("page.js"), _asset("page.css")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(_title(report))}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(filter(None, _body(report)))
        + f"\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _title(report: Report) -> str:
    first = next(iter(report.findings), None)
    return (
        f"{first.code} {first.title}"
        if first and report.attempts
        else f"ddpdoctor {report.command}"
    )


def _body(report: Report) -> Iterator[str]:
    yield _verdict(report)
    yield "<main>"
    if report.attempts and report.findings and (told := story(report, report.findings[0])):
        yield f'<section id="story"><h2>What happened</h2>{told}</section>'
    blamed = dict.fromkeys(rank for finding in report.findings for rank in finding.ranks)
    pairs = list(zip_longest(report.groups, report.attempts))
    for group, attempt in reversed(pairs) if report.attempts else ():
        yield _attempt(report, group, attempt, blamed)
    yield _findings(report)
    for title, drawing in report.pictures:
        yield f'<section><h2>{text(title)}</h2><div class="wide">{drawing}</div></section>'
    for group, attempt in pairs:
        yield _group(group) if attempt is None else ""
    if to_do := report.to_do:
        cells = [[text(code), prose(do), f"<code>{text(run)}</code>"] for code, do, run in to_do]
        commands = table("", ("code", "what", "command"), cells)
        yield f"<section><h2>What to do</h2>{commands}</section>"
    if report.facts:
        known = table("", ("fact", "value"), [list(map(text, fact)) for fact in report.facts])
        shown = "" if pairs else " open"
        yield f"<details{shown}><summary>Environment</summary>{known}</details>"
    if report.not_seen:
        yield f'<section id="unseen"><h2>Not seen</h2>{items("", report.not_seen, 50)}</section>'
    if report.excerpts and report.attempts:
        lines = "".join(map(source, report.excerpts))
        yield f"<details><summary>The lines of source that are spoken of</summary>{lines}</details>"
    yield _issue(report)
    yield "</main>"


def _verdict(report: Report) -> str:
    first = next(iter(report.findings), None)
    said = _begun(report.verdict.removeprefix(f"{report.failure}; "))
    parts = [f'<header class="{_gravity(report)}">']
    if report.failure:
        parts += [f"<h1>{text(_begun(report.failure))}</h1>", f"<p>{text(said)}</p>"]
    elif first is None or not report.attempts:
        parts.append(f"<h1>{text(said)}</h1>")
    else:
        badge = f"{first.code} {first.title}"
        sure = words.headline(report, first)
        parts += [
            f'<p class="badge"><b>{text(badge)}</b> {first.severity}, {text(sure)}</p>',
            f"<h1>{prose(_SENTENCE.sub(lambda found: found[0].upper(), first.cause))}</h1>",
            f"<p><b>What to do:</b> {_remedy(first)}</p>",
            f"<p>{text(said)}</p>",
        ]
    parts += [
        f"<p><code>{text(' '.join(report.subject) or f'ddpdoctor {report.command}')}</code></p>",
        *(f'<p class="dim">{prose(note)}</p>' for note in report.notes),
        f'<p class="dim">{text(report.about)}</p></header>',
    ]
    return "\n".join(parts)


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _gravity(report: Report) -> str:
    """What the verdict looks like: well only where all was seen, and nothing has failed."""
    if report.failure:
        return "warning" if report.ended_by == "signal" else "error"
    if report.findings:
        return report.findings[0].severity
    if any("bad" in group.states for group in report.groups):
        return "error"
    return "unseen" if report.not_seen else "well"


def _remedy(finding: Finding) -> str:
    commands = (*finding.cure.commands, f"ddpdoctor explain {finding.code}")
    told = " ".join(f"<code>{text(command)}</code>" for command in dict.fromkeys(commands))
    return f"{prose(words.cure(finding))} {told}"


def _group(group: Group) -> str:
    if not group.rows:
        return ""
    rows = [[prose(cell) for cell in row] for row in group.rows]
    for row, state in zip(rows, group.states, strict=False):
        row[1] = f'<span class="{state}">{row[1]}</span>' if state else row[1]
    told = f'<p class="dim">{prose(group.note)}</p>' * bool(group.note)
    told += table("", group.columns, rows)
    if len(rows) > _FOLDED and "bad" not in group.states:
        told = f"<details><summary>All {len(rows)}</summary>{told}</details>"
    return f"<section><h2>{text(group.title)}</h2>{told}</section>"


def _attempt(report: Report, group: Group, attempt: Attempt, blamed: Collection[int]) -> str:
    if not attempt.ranks:
        return ""
    drawn = lanes(attempt, blamed) if any(line.marks for line in attempt.ranks) else ""
    parts = [
        drawn,
        table("Each rank", ("ranks", "where", "in", "doing", "end"), _fates(group)),
        *training(attempt),
    ]
    if drawn and report.run_dir:
        trace = f"ddpdoctor diagnose {shlex.quote(report.run_dir)} --format perfetto -o trace.json"
        parts.append(f'<p class="dim">For ui.perfetto.dev: <code>{text(trace)}</code></p>')
    body = "\n".join(filter(None, parts))
    head = text(group.title)
    if attempt.seconds:
        head += f", {seconds(attempt.seconds)}"
    if report.are_jobs or attempt is report.attempts[-1]:
        return f'<section class="ranks"><h2>{head}</h2>{body}</section>'
    return f'<details class="ranks"><summary>{head}</summary>{body}</details>'


def _fates(group: Group) -> Iterator[tuple[str, ...]]:
    rows = group.rows
    for row in rows[:_MOST_ROWS]:
        who, place, function, doing, waits = map(prose, row)
        yield f"<b>{who}</b>", place, function, doing, waits
    if len(rows) > _MOST_ROWS:
        yield f"and {len(rows) - _MOST_ROWS} more", "", "", "", ""


def _findings(report: Report) -> str:
    if not report.findings:
        return ""
    told = "".join(
        _finding(report, finding, n < _OPEN)
        for n, finding in enumerate(report.findings[:_MOST_FINDINGS])
    )
    others = Counter(
        (each.code, each.title, each.severity) for each in report.findings[_MOST_FINDINGS:]
    )
    rows = ((text(f"{c} {t}"), s, str(number)) for (c, t, s), number in others.most_common(200))
    hint = "words, a code, rank 12" if report.attempts else "words, a code, a file"
    search = (
        '<p class="tools" hidden><label>Search <input type="search" id="search" '
        f'placeholder="{hint}"></label> '
        '<span id="found" aria-live="polite"></span></p>\n'
    )
    many = any(len(attempt.ranks) > _MANY_RANKS for attempt in report.attempts)
    rest = table("And more of these, which the JSON tells", ("what", "is", "times"), rows)
    return (
        f'<section id="findings"><h2>{count(len(report.findings), "finding")}</h2>\n'
        f"{search if many or len(report.findings) > 1 else ''}{told}{rest}"
        "</section>"
    )


def _finding(report: Report, finding: Finding, is_open: bool) -> str:
    rows = [tuple(map(prose, row)) for row in islice(words.standing(finding), 16)]
    where = f"<p><b>{text(report.where(finding))}</b></p>" if finding.span else ""
    excerpt = report.excerpt_of(finding)
    at_a_glance = (finding.severity, words.headline(report, finding), report.where(finding))
    return "\n".join(
        (
            f'<details class="finding {finding.severity}"{" open" if is_open else ""}>',
            f"<summary><b>{text(finding.code)}</b> {text(finding.title)} "
            f"<small>{text(', '.join(filter(None, at_a_glance)))}</small>"
            f"<span>{prose(finding.cause)}</span></summary>",
            f"<p><b>Cause:</b> {prose(finding.cause)}</p>",
            table("", words.COLUMNS, rows) or where,
            source(excerpt) if excerpt else "",
            items("Evidence", finding.evidence),
            items("As a consequence", finding.consequences),
            f"<p><b>Remedy:</b> {_remedy(finding)}</p></details>",
        )
    )


def _issue(report: Report) -> str:
    """What people paste elsewhere."""
    short = report.model_copy(update={"findings": report.findings[:_ISSUE_FINDINGS]})
    issue = as_markdown.render(short)
    if len(issue) > _ISSUE_LENGTH:
        issue = f"{issue[:_ISSUE_LENGTH]}\n\n(cut short)\n"
    shown = "\n".join(map(text, issue.splitlines()))
    return (
        '<details id="issue"><summary>As an issue, in Markdown</summary>'
        '<p class="tools" hidden><button type="button" id="copy">Copy</button> '
        '<span id="copied" aria-live="polite"></span></p>'
        f'<pre tabindex="0">{shown}</pre></details>'
    )
