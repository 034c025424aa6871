"""The report that a person reads: what is wrong, who, where, why and what to do; else nothing."""

from __future__ import annotations

import textwrap

from ddpdoctor.catalog import Finding
from ddpdoctor.report.model import Report
from ddpdoctor.report.output import Page
from ddpdoctor.report.run import words
from ddpdoctor.report.run.model import Attempt, Excerpt, RunReport
from ddpdoctor.report.run.words import Row
from ddpdoctor.report.words import one_line

_MARKS = {"error": "✖", "warning": "▲", "info": "·"}
_COLOURS = {"error": "31", "warning": "33", "info": "36"}
_LABEL = 10
_MOST_LINES = 12
"""Lines of evidence, or of consequences, that are shown of one finding."""
_MOST_ROWS = 16


def render(report: RunReport, page: Page) -> str:
    """What could not be seen, the findings, a summary. "" if a run has nothing to tell."""
    quiet = report.kind == "run" and not report.findings
    parts = [_not_seen(report, page)] if report.not_seen else []
    parts += [finding(report, each, page) for each in report.findings]
    if quiet and not parts:
        return ""
    if report.kind == "attach":
        parts += [_fates(attempt, page) for attempt in report.attempts]
    elif report.kind == "diagnose" and not report.findings and report.ranks:
        parts.append(_fates(report.attempts[-1], page))
    lines = [] if quiet else [words.summary(report)]
    if earlier := words.attempts_line(report):
        lines.append(earlier)
    if report.run_dir and report.kind == "run":
        lines.append(f"what the ranks wrote: {one_line(report.run_dir)}")
    if lines:
        parts.append("".join(_wrapped(line, "", "  ", page) for line in lines))
    return "\n".join(parts)


def finding(report: Report | RunReport, each: Finding, page: Page) -> str:
    """One finding: a headline, who stood where, the line itself, cause and remedy."""
    heavy = _COLOURS[each.severity]
    mark = _painted(_MARKS[each.severity], heavy, page)
    title = _painted(f"{each.code} {one_line(each.title)}", f"1;{heavy}", page)
    parts = [f"{mark} {title} · {words.headline(report, each)}\n"]
    parts += _table(words.rows(each), page)
    if (lines := report.excerpt_at(each.place)) is not None:
        parts += _excerpt(report, each, lines, page)
    parts.append(_labelled("Cause", each.cause, page))
    parts += _several("Evidence", each.evidence, page)
    parts += _several("Hence", each.consequences, page)
    parts.append(_labelled("Remedy", words.remedy(each), page))
    return "".join(parts)


def _fates(attempt: Attempt, page: Page) -> str:
    rows = _table(words.fates(attempt.ranks), page)
    return "".join([f"{one_line(attempt.name)}\n", *rows])


def _not_seen(report: RunReport, page: Page) -> str:
    mark = _painted("?", "36", page)
    lines = [f"not seen: {one_line(line)}" for line in report.not_seen]
    return "".join(_wrapped(line, f"{mark} ", "  ", page) for line in lines)


def _table(rows: list[Row], page: Page) -> list[str]:
    """The rows in columns; where they do not fit, what was done goes on a line of its own."""
    shown = rows[:_MOST_ROWS]
    columns = list(zip(*shown, strict=True))
    widths = [max(map(len, column)) for column in columns]
    used = [width for width in widths if width]
    lines = []
    if 2 + sum(used) + 2 * (len(used) - 1) <= page.width:
        for row in shown:
            cells = [cell.ljust(w) for cell, w in zip(row, widths, strict=True) if w]
            lines.append(f"  {'  '.join(cells)}".rstrip() + "\n")
    else:
        for row in shown:
            who, place, function, *rest = row
            lines.append(
                _wrapped("  ".join(filter(None, (who, place, function))), "  ", "    ", page)
            )
            if any(rest):
                lines.append(_wrapped("  ".join(filter(None, rest)), "      ", "      ", page))
    if len(rows) > len(shown):
        lines.append(f"  and {len(rows) - len(shown)} more\n")
    return lines


def _excerpt(report: Report | RunReport, each: Finding, lines: Excerpt, page: Page) -> list[str]:
    place = each.place
    assert place is not None
    margin = len(str(lines.first + len(lines.lines) - 1))
    room = page.width - margin - 6
    blank = min((_indent(line) for line in lines.lines if line.strip()), default=0)
    parts = [_dim(f"{' ' * (margin + 2)}--> {one_line(report.shown(place))}", page) + "\n"]
    for number, line in enumerate(lines.lines, lines.first):
        text = _printable(line)[blank:].rstrip()
        cut = text if len(text) <= room else f"{text[: room - 1]}…"
        parts.append(f"  {_dim(str(number).rjust(margin), page)} | {cut}".rstrip() + "\n")
        if number == lines.line:
            caret = "^" * max(1, len(cut) - _indent(cut))
            caret = _painted(caret, _COLOURS[each.severity], page)
            parts.append(f"  {' ' * margin} | {' ' * _indent(cut)}{caret}\n")
    return parts


def _several(label: str, lines: tuple[str, ...], page: Page) -> list[str]:
    shown = [_labelled(label if n == 0 else "", line, page) for n, line in enumerate(lines)]
    if len(shown) > _MOST_LINES:
        more = f"and {len(shown) - _MOST_LINES} more"
        shown = [*shown[:_MOST_LINES], _labelled("", more, page)]
    return shown


def _labelled(label: str, text: str, page: Page) -> str:
    painted = _painted(label, "1", page) if label else ""
    wrapped = _wrapped(one_line(text), " " * (2 + _LABEL), " " * (2 + _LABEL), page)
    return f"  {painted}{' ' * (_LABEL - len(label))}{wrapped[2 + _LABEL :]}"


def _wrapped(text: str, first: str, rest: str, page: Page) -> str:
    lines = textwrap.wrap(
        text,
        max(page.width, 30),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "".join(f"{line}\n" for line in lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _printable(line: str) -> str:
    """A line of source that cannot move the cursor: tabs as blanks, the rest as blanks too."""
    return "".join(c if c.isprintable() else " " for c in line.expandtabs(4))


def _painted(text: str, colour: str, page: Page) -> str:
    return f"\033[{colour}m{text}\033[0m" if page.colour else text


def _dim(text: str, page: Page) -> str:
    return _painted(text, "2", page)
