"""What every part of the page is made of: text that is inert, tables, lines of source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import PurePath
from textwrap import dedent

from ddpdoctor.report.excerpts import Excerpt
from ddpdoctor.report.words import one_line

_QUOTED = re.compile(r"`([^`]+)`")


def text(said: object) -> str:
    """Somebody else's text: on one line, escaped; what is no character becomes a question mark."""
    return escape(one_line(str(said)).encode("utf-8", "replace").decode("utf-8"))


def prose(said: str) -> str:
    """The same, with what stands in backticks as code."""
    return _QUOTED.sub(r"<code>\1</code>", text(said))


def seconds(time: float) -> str:
    """A moment or a duration as people say it: "8.57 s", "12 min 5 s"."""
    if time < 600:
        return f"{time:.2f} s"
    minutes, rest = divmod(round(time), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def items(title: str, lines: Iterable[str], most: int = 12) -> str:
    """A list under a small title; "" if there is nothing in it."""
    told = list(lines)
    rows = [f"<li>{prose(line)}</li>" for line in told[:most]]
    rows += [f"<li>and {len(told) - most} more</li>"] if len(told) > most else []
    return f"<h3>{title}</h3>\n<ul>{''.join(rows)}</ul>" if rows else ""


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells that are markup already; columns that are empty are left out."""
    told = [list(row) for row in rows]
    used = [n for n in range(len(heads)) if any(row[n] for row in told)]
    if not told:
        return ""
    head = "".join(f'<th scope="col">{heads[n]}</th>' for n in used)
    body = "".join(
        "<tr>" + "".join(f'<td data-head="{heads[n]}">{row[n]}</td>' for n in used) + "</tr>"
        for row in told
    )
    said = f"<caption>{caption}</caption>" if caption else ""
    rest = f"{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{rest}</table></div>'


def spoken(said: str) -> str:
    """What a picture says to the eye, for who listens to the page; it is inert text already."""
    return f'<span class="spoken">{said}</span>'


def source(excerpt: Excerpt) -> str:
    """Some lines of source, the one that is meant marked."""
    lines = []
    shown = dedent("\n".join(excerpt.lines)).rstrip().split("\n")
    for number, line in enumerate(shown, excerpt.first):
        row = f"<i>{number}</i> {code(line)}"
        lines.append(
            f"<mark>{spoken('this line: ')}{row}</mark>" if number == excerpt.line else row
        )
    place = text(f"{PurePath(excerpt.file).name}:{excerpt.line}")
    label = f'role="region" aria-label="source at {place}"'
    return f'<pre tabindex="0" {label} data-place="{place}">{chr(10).join(lines)}</pre>'


def code(line: str) -> str:
    """A line of source that can do nothing."""
    shown = "".join(c if c.isprintable() else " " for c in line.expandtabs(4))
    return escape(shown.encode("utf-8", "replace").decode("utf-8"))
