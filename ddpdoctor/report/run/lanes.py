"""The lives of ranks, drawn: one lane each, as SVG within a page."""

from __future__ import annotations

from html import escape

from ddpdoctor.report.run.model import Attempt, Mark, RankLine
from ddpdoctor.report.words import one_line

_MOST = 128
"""Lanes that are drawn; the ranks beyond are counted."""
_WIDTH, _LEFT, _RIGHT, _LANE = 1000, 80, 420, 22
_THIN = 3


def lanes(attempt: Attempt) -> str:
    """A lane for each rank, what is worst first where there are too many, and a scale of time."""
    shown = sorted(sorted(attempt.ranks, key=_ended_well)[:_MOST], key=lambda line: line.rank)
    height = _LANE * (len(shown) + 1)
    rows = [_lane(line, n * _LANE, attempt.seconds) for n, line in enumerate(shown)]
    foot = height - 6
    scale = (
        f'<text x="{_LEFT}" y="{foot}">0 s</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{foot}" text-anchor="end">{attempt.seconds:.1f} s</text>'
    )
    drawn = (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="ranks over time">'
        f"{''.join(rows)}{scale}</svg>"
    )
    hidden = len(attempt.ranks) - len(shown)
    return f"{drawn}<p>and {hidden} more ranks</p>" if hidden else drawn


def _ended_well(line: RankLine) -> bool:
    return line.exit_code == 0


def _lane(line: RankLine, top: int, seconds: float) -> str:
    end = max((mark.until for mark in line.marks), default=0.0)
    life = Mark(kind="end", at=0.0, until=end, text=line.fate)
    # The long first: what is drawn later lies on top, and a point must not be hidden.
    marks = sorted(line.marks, key=lambda mark: mark.at - mark.until)
    bars = [_bar(life, "life", top, seconds)] if line.pid else []
    bars += [_bar(mark, mark.kind, top, seconds) for mark in marks]
    text = top + _LANE - 7
    return (
        f'<text x="0" y="{text}">rank {line.rank}</text>{"".join(bars)}'
        f'<text x="{_WIDTH - _RIGHT + 10}" y="{text}">{_shortened(line.fate)}</text>'
    )


def _bar(mark: Mark, kind: str, top: int, seconds: float) -> str:
    room = _WIDTH - _LEFT - _RIGHT
    scale = room / seconds if seconds > 0 else 0.0
    x = _LEFT + min(room, mark.at * scale)
    width = max(_THIN, min(room, mark.until * scale) - (x - _LEFT))
    title = f"{mark.at:.2f} s: {one_line(mark.text)}"
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{top + 4}" width="{width:.1f}" height="{_LANE - 8}">'
        f"<title>{_escaped(title)}</title></rect>"
    )


def _shortened(text: str, limit: int = 28) -> str:
    text = one_line(text)
    return _escaped(text if len(text) <= limit else f"{text[: limit - 1]}…")


def _escaped(text: str) -> str:
    return escape(text.encode("utf-8", "replace").decode("utf-8"))
