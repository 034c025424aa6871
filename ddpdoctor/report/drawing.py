"""Curves as inline SVG, in the colours of the page that they stand on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 260, 110, 30, 12, 40
_COLOURS = "abc"
_APART = 90
"""Between two words below, on a phone too."""
_FEW = 24
"""More points than this are drawn small."""
_LARGEST = 1e300
"""Differences of what is larger may be infinite: it lies on the edge of its picture."""

Point = tuple[float, float, str]
"""(x, y, what it says)"""


@dataclass(frozen=True)
class Axis:
    """What a direction means: values in order, and the words for one."""

    ticks: Sequence[float]
    """The first and the last are its ends."""
    words: Callable[[float], str]
    scale: Callable[[float], float] = float
    """As math.log10."""

    def share(self, value: float) -> float:
        """0 at the first end, 1 at the last, and beyond them."""
        low, high = self.scale(self.ticks[0]), self.scale(self.ticks[-1])
        return min(1.0, max(0.0, (self.scale(value) - low) / ((high - low) or 1.0)))


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers from `low` or less to `high` or more, as far apart as shows the difference."""
    low, high = (min(max(end, -_LARGEST), _LARGEST) for end in (low, high))
    span = high - low or abs(high)
    span = span if span > 1e-300 else 1.0  # what is smaller has no logarithm of a tick
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * about >= span)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [n * step for n in range(first, max(last, first + 1) + 1)]


def curves(
    said: str, series: Mapping[str, Sequence[Point]], x: Axis, y: Axis, limit: tuple[float, str]
) -> str:
    """A line for each of the series, and one across at a limit that has a name ("" for none)."""

    def across(value: float) -> float:
        return _LEFT + x.share(value) * (_WIDTH - _LEFT - _RIGHT)

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - y.share(value) * (_HEIGHT - _BOTTOM - _TOP)

    names = []
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(said)}">']
    for value in y.ticks:
        parts.append(_across(up(value), 'stroke="var(--line)"'))
        parts.append(_text(_LEFT - 8, up(value) + 4, y.words(value), "end"))
    room = float(_WIDTH)
    for at in reversed(x.ticks):
        if across(at) <= room:
            parts.append(_text(across(at), _HEIGHT - 12, x.words(at), "middle"))
            room = across(at) - _APART
    for colour, (name, points) in zip(_COLOURS * len(series), series.items(), strict=False):
        places = [(across(at), up(value)) for at, value, _ in points]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="var(--{colour})" stroke-width="2"/>'
        )
        size = 3 if len(places) <= _FEW else 1.5
        parts += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{size}" fill="var(--{colour})">'
            f"<title>{escape(title)}</title></circle>"
            for (px, py), (_, _, title) in zip(places, points, strict=True)
        ]
        names.append(f'<li><i style="background:var(--{colour})"></i>{escape(name)}</li>')
    if limit[1]:
        parts.append(_across(up(limit[0]), 'stroke="var(--dim)" stroke-dasharray="5 4"'))
        names.append(f'<li><i class="limit"></i>{escape(limit[1])}</li>')
    return f'<ul class="legend">{"".join(names)}</ul>{"".join(parts)}</svg>'


def _across(y: float, how: str) -> str:
    return f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" {how}/>'


def _text(x: float, y: float, said: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'
