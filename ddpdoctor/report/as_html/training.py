"""How the ranks trained: when they came to their steps, which parameters differ, the files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.evidence import named
from ddpdoctor.report.as_html.markup import seconds, table, text
from ddpdoctor.report.drawing import Axis, Point, curves, ticks
from ddpdoctor.report.lives import Attempt, Mark, RankLine
from ddpdoctor.report.words import count

_MOST = 50
_MOST_STEPS = 10
"""Columns of the table of parameters."""
_LANE = 18


def training(attempt: Attempt) -> Iterator[str]:
    """The parts of which something is known."""
    drawn = "".join((*_losses(attempt), _steps(attempt), _metrics(attempt)))
    yield f'<div class="charts">{drawn}</div>' if drawn else ""
    columns = ("step", "first rank", "per step", "last rank", "skew")
    if told := table("Steps", columns, list(_rows(attempt))[-_MOST:]):
        yield f"<details><summary>Each step that was looked at</summary>{told}</details>"
    yield _parameters(attempt)
    yield from _files(attempt)


def _rows(attempt: Attempt) -> Iterator[tuple[str, ...]]:
    """The steps that were looked at: when the ranks came to them, and how far apart."""
    pace = {step: f"{1000 * each:.1f} ms" for step, each in _pace(attempt)}
    for each in attempt.steps:
        last = f"{seconds(each.last)} (rank {each.slowest})"
        skew = f"{1000 * (each.last - each.first):.1f} ms" if each.ranks > 1 else ""
        yield str(each.step), seconds(each.first), pace.get(each.step, ""), last, skew


def _pace(attempt: Attempt) -> Iterator[tuple[int, float]]:
    """(step, seconds of one) since the step that was looked at before."""
    for before, now in pairwise(attempt.steps):
        if now.first > before.first:
            yield now.step, (now.first - before.first) / (now.step - before.step)


def _losses(attempt: Attempt) -> Iterator[str]:
    """What the ranks went backward from: all of them between the lowest and the highest."""
    for each in attempt.losses:
        by_name = {"mean of the ranks": each.mean, "lowest": each.least, "highest": each.most}
        if each.least == each.most:
            by_name = {"loss": each.mean}
        told: dict[str, list[Point]] = {
            name: [
                (float(x), y, f"step {x}: {y:.6g}") for x, y in zip(each.steps, values, strict=True)
            ]
            for name, values in by_name.items()
        }
        note = ""
        if each.not_finite:
            note = f"not finite on {named(each.not_finite)}, first at step {each.not_finite_since}"
        at = f" at {each.place}" if each.place else ""
        yield _picture(f"Loss{at}, by step", "", told if len(each.steps) > 1 else {}, note=note)


def _steps(attempt: Attempt) -> str:
    pace = [(float(n), 1000 * each) for n, each in _pace(attempt)]
    skew = [(float(s.step), 1000 * (s.last - s.first)) for s in attempt.steps if s.ranks > 1]
    series = {"time of a step": pace, "rank skew": skew}
    told: dict[str, list[Point]] = {
        name: [(x, y, f"step {x:.0f}: {y:.1f} ms") for x, y in points]
        for name, points in series.items()
        if len(points) > 1
    }
    title = " and ".join(told)
    return _picture(f"{title[:1].upper()}{title[1:]}, by step", "ms", told, least=0.0)


def _metrics(attempt: Attempt) -> str:
    told: dict[str, list[Point]] = {}
    for each in attempt.metrics:
        points = [(float(n), value, f"{n}: {value:.6g}") for n, value in enumerate(each.values, 1)]
        if len(points) > 1:
            told[named(each.ranks)] = points
    return _picture("The metric that the learning rate follows", "", told)


def _picture(
    title: str,
    unit: str,
    series: dict[str, list[Point]],
    least: float = math.inf,
    note: str = "",
) -> str:
    said = f'<p class="apart">{text(note)}</p>' if note else ""
    if not series:
        return f"<div><h3>{text(title)}</h3>{said}</div>" if note else ""
    points = [point for each in series.values() for point in each]
    xs = sorted({x for x, _, _ in points})
    ys = [y for _, y, _ in points]
    up = Axis(ticks(min(least, *ys), max(ys)), lambda value: f"{value:g} {unit}".strip())
    along = Axis(xs, "{:.0f}".format)
    drawing = curves(title, series, along, up, (0.0, ""))
    return f'<div><h3>{text(title)}</h3>{said}<div class="wide">{drawing}</div></div>'


def _parameters(attempt: Attempt) -> str:
    """Which of them are not the same on all ranks, and since when."""
    if not attempt.parameters:
        return ""
    shown = attempt.parameter_steps[-_MOST_STEPS:]
    rows = []
    for each in attempt.parameters[:_MOST]:
        cells = [
            f'<b class="apart">{n} versions</b>' if n > 1 else "same"
            for n in each.versions[-_MOST_STEPS:]
        ]
        rows.append((f"<code>{text(each.name)}</code>", *cells))
    heads = ("parameter", *(f"step {step}" for step in shown))
    apart = count(attempt.parameters_apart, "parameter")
    caption = f"{apart} not the same on all ranks"
    return table(caption, heads, rows)


def _files(attempt: Attempt) -> Iterator[str]:
    """A lane for each thing that was done to a file, and the same as a table."""
    found: dict[tuple[str, str], list[tuple[RankLine, Mark]]] = {}
    for line in attempt.ranks:
        for mark in line.marks:
            if mark.kind == "file":
                found.setdefault((mark.text, str(mark.place or "")), []).append((line, mark))
    ordered = sorted(found.items(), key=lambda each: min(mark.at for _, mark in each[1]))[:_MOST]
    if not ordered:
        return
    span, rows, drawn = attempt.seconds or 1.0, [], []
    for number, ((said, place), made) in enumerate(ordered):
        first = min(mark.at for _, mark in made)
        took = max(mark.until - mark.at for _, mark in made)
        who = named({line.rank for line, _ in made})
        rows.append((text(said), text(who), seconds(first), text(place), seconds(took)))
        drawn += [
            f'<rect class="file" x="{1000 * mark.at / span:.2f}" y="{number * _LANE + 4}" '
            f'width="{max(0.1, 1000 * (mark.until - mark.at) / span):.2f}" '
            f'height="{_LANE - 8}"><title>'
            f"{seconds(mark.at)}: rank {line.rank} {text(said)}</title></rect>"
            for line, mark in made
        ]
    height = _LANE * len(ordered)
    names = "".join(f"<li>{said}</li>" for said, *_ in rows)
    yield (
        f'<h3>Files over {seconds(span)}</h3><div class="files"><ol>{names}</ol>'
        f'<svg viewBox="0 0 1000 {height}" height="{height}" preserveAspectRatio="none" role="img" '
        f'aria-label="files over time, told in the table below">{"".join(drawn)}</svg></div>'
    )
    yield table("", ("what", "by", "when", "line", "took"), rows)
