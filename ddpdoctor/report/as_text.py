"""The report that a person reads in a terminal: as wide as its page, readable without colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ddpdoctor.catalog import Finding
from ddpdoctor.report import words
from ddpdoctor.report.model import Group, Report, State
from ddpdoctor.report.output import Page
from ddpdoctor.report.words import one_line

_SEVERITIES = {"error": ("✖", "31"), "warning": ("▲", "33"), "info": ("·", "36")}
_STATES: dict[State, tuple[str, str]] = {
    "good": ("✓", "32"),
    "noted": ("●", "36"),
    "partly": ("!", "33"),
    "unseen": ("○", "33"),
    "unknown": ("?", "33"),
    "bad": ("✗", "1;31"),
}
_LABEL = 12
"""Columns before what is said of a finding."""
_MOST_LINES = 12
"""Lines of evidence, or of consequences, that are shown of one finding."""
_MOST_ROWS = 16
_LEAST = 24
"""Columns that a sentence must have."""


def render(report: Report, page: Page) -> str:
    """What could not be seen, what there is, what is wrong, what to do, and the verdict."""
    to_do = [(code, what, f"$ {command}") for code, what, command in report.to_do]
    notes = (_paragraph(line, "", page, rest=2) for line in report.notes)
    parts = [
        _heading(report, page),
        # The facts say for themselves which of them are not known.
        not_seen(report, page) if not report.facts else "",
        "".join(_table(report.facts, page, sentences=1, most=len(report.facts))),
        *(_group(group, page) for group in report.groups if not group.is_detail),
        *(finding(report, each, page) for each in report.findings),
        "".join((_bold("What to do", page), *_table(to_do, page, sentences=2))) if to_do else "",
        "".join((_bold(report.verdict, page), *notes)),
    ]
    return "\n".join(filter(None, parts))


def not_seen(report: Report, page: Page) -> str:
    """What could not be watched or known, a line each."""
    mark = _painted("?", "36", page)
    told = (_paragraph(f"not seen: {line}", "  ", page) for line in map(one_line, report.not_seen))
    return "".join(f"{mark}{line[1:]}" for line in told)


def finding(report: Report, each: Finding, page: Page) -> str:
    """One finding: a headline, who stood where, the line itself, cause and remedy."""
    mark, heavy = _SEVERITIES[each.severity]
    title = _painted(f"{each.code} {one_line(each.title)}", f"1;{heavy}", page)
    parts = [f"{_painted(mark, heavy, page)} {title} · {words.headline(report, each)}\n"]
    parts += _table(words.standing(each), page)
    parts += _source(report, each, page)
    parts += _labelled("Cause", [each.cause], page)
    parts += _labelled("Evidence", each.evidence, page)
    parts += _labelled("Hence", each.consequences, page)
    parts += _labelled("Remedy", words.remedy(each), page)
    return "".join(parts)


def _heading(report: Report, page: Page) -> str:
    if report.attempts or not (report.machine or report.facts):
        return ""
    return _bold(f"ddpdoctor {report.command}: {report.machine or report.ddpdoctor}", page)


def _group(group: Group, page: Page) -> str:
    title = _bold(group.title, page)
    note = _paragraph(group.note, "", page) if group.note else ""
    rows = [group.columns, *group.rows] if group.columns and not group.states else group.rows
    table = _table(rows, page, group.states, group.sentences, _MOST_ROWS * 2)
    return "".join((title, note, *table))


def _table(
    rows: Iterable[Sequence[str]],
    page: Page,
    states: Sequence[State] = (),
    sentences: int = 0,
    most: int = _MOST_ROWS,
) -> Iterator[str]:
    """Rows in columns, then their sentences below each other; no columns where they do not fit."""
    told = [tuple(map(one_line, row)) for row in rows]
    shown = [row[: len(row) - sentences] for row in told[:most]]
    widths = [max(map(_columns, column)) for column in zip(*shown, strict=True)]
    used = [n for n, width in enumerate(widths) if width]
    numeric = {n for n in used if all(row[n][:1].isdigit() for row in shown[1:] if row[n])}
    margin = 2 + 2 * bool(states) + sum(widths[n] + 2 for n in used)
    fits = margin + _LEAST <= page.width if sentences else margin - 2 <= page.width
    for number, cells in enumerate(shown):
        state = states[number] if states else ""
        mark, colour = _STATES.get(state, (" ", ""))
        lead = f"  {_painted(mark, colour, page)} " if states else "  "
        said = [line for line in told[number][len(cells) :] if line]
        if state == "good":
            said = said[:1]  # what is as it should be needs no evidence
        if not fits:
            line = _paragraph("  ".join(filter(None, cells)), " " * 4, page, rest=6)
            yield lead + line[4 if states else 2 :] if line.strip() else ""
            yield from (_paragraph(each, " " * 6, page) for each in said)
            continue
        line = "  ".join(_padded(cells[n], widths[n], n in numeric and not sentences) for n in used)
        if not said:
            yield f"{lead}{line}".rstrip() + "\n"
        for each in said:
            told_now = _paragraph(each, " " * margin, page)
            yield f"{lead}{line}  {told_now[margin:]}" if each is said[0] else told_now
    if len(told) > most:
        yield f"  and {len(told) - most} more\n"


def _padded(cell: str, width: int, is_number: bool) -> str:
    blank = " " * (width - _columns(cell))
    return f"{blank}{cell}" if is_number else f"{cell}{blank}"


def _source(report: Report, each: Finding, page: Page) -> Iterator[str]:
    """The line that is meant in its surroundings, what is meant of it underlined."""
    place, excerpt = each.place, report.excerpt_of(each)
    if place is None or (excerpt is None and each.span is None):
        return
    last = excerpt.first + len(excerpt.lines) - 1 if excerpt else place.line
    margin = " " * len(str(last))
    yield _painted(f"  {margin}--> {one_line(report.where(each))}", "2", page) + "\n"
    if excerpt is None or not excerpt.marked.strip():
        return
    lines = [_printable(line) for line in excerpt.lines]
    blank = min(_indent(line) for line in lines if line.strip())
    line, room = _printable(excerpt.marked), page.width - len(margin) - 6
    begin, end = _indent(line), len(line.rstrip())
    if (span := each.span) is not None:
        begin = min(span.column - 1, end)
        end = span.end_column - 1 if span.end_line == place.line else end
    shift = blank if end - blank <= room else max(blank, begin - room // 3)
    for number, text in enumerate(lines, excerpt.first):
        cut = f"…{text[shift + 1 :]}" if shift > blank else text[shift:].rstrip()
        cut = cut if len(cut) <= room else f"{cut[: room - 1]}…"
        numbered = _painted(str(number).rjust(len(margin)), "2", page)
        yield f"  {numbered} | {cut}".rstrip() + "\n"
        if number == excerpt.line:
            below = "^" * max(1, min(end - shift, room) - (begin - shift))
            caret = _painted(below, _SEVERITIES[each.severity][1], page)
            yield f"  {margin} | {' ' * (begin - shift)}{caret}\n"


def _labelled(label: str, lines: Sequence[str], page: Page) -> Iterator[str]:
    more = [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    for line in map(one_line, (*lines[:_MOST_LINES], *more)):
        told = _paragraph(line, " " * _LABEL, page)
        blank = " " * (_LABEL - 2 - len(label))
        yield f"  {_painted(label, '1', page) if label else ''}{blank}{told[_LABEL:]}"
        label = ""


def _paragraph(text: str, indent: str, page: Page, rest: int | None = None) -> str:
    """Text within the page, its lines after the first indented by `rest`."""
    room = max(page.width - max(len(indent), rest or 0), _LEAST)
    first, *others = _wrapped(one_line(text), room) or [""]
    below = indent if rest is None else " " * rest
    return "".join([f"{indent}{first}\n", *(f"{below}{line}\n" for line in others)])


def _bold(text: str, page: Page) -> str:
    lines = _wrapped(one_line(text), page.width)
    return "".join(f"{_painted(line, '1', page)}\n" for line in lines)


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many columns; a word that no line holds is cut."""
    lines, line = [], ""
    for word in text.split(" "):
        if line and _columns(line) + 1 + _columns(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
        while _columns(line) > width:
            fitting = next(n for n in range(width, 0, -1) if _columns(line[:n]) <= width)
            lines.append(line[:fitting])
            line = line[fitting:]
    return [*lines, line] if line else lines


def _columns(text: str) -> int:
    """What it takes in a terminal, or a little more."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return sum(max(1, cell_len(each)) for each in text)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _printable(line: str) -> str:
    """A line of source that cannot move the cursor, each of its characters where it was."""
    return "".join(c if c.isprintable() else " " for c in line)


def _painted(text: str, colour: str, page: Page) -> str:
    return f"\033[{colour}m{text}\033[0m" if page.colour and colour else text
