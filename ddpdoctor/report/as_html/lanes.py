"""The lives of ranks over time, a lane each, drawn so that a page can be zoomed into by its script.

Where there are more ranks than lanes, those that fare like few others have theirs on top, and the
others are folded into bands whose shade is the share of ranks that wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ddpdoctor.evidence import named
from ddpdoctor.report.as_html.markup import seconds, text
from ddpdoctor.report.drawing import ticks
from ddpdoctor.report.lives import Attempt, Call, CallKey, Mark, RankLine, completed
from ddpdoctor.report.words import count

_LANES, _ALONE, _BANDS = 32, 32, 24
_WIDTH, _LANE, _TOP, _BAR = 1000, 34, 19, 11
_BINS, _SHADES = 150, 4
_LEAST = 0.001
"""What has no width is not drawn at all; its outline makes this much be seen."""
_MOST = 300
"""Collectives that are linked from lane to lane."""
_POINTS = ("joining", "exception", "warning", "step", "end")
_LEGEND = {
    "life": "alive",
    "paused": "no collective issued",
    "wait": "waits until the last rank calls",
    "blocked": "blocked in a call",
    "file": "a file",
    "joining": "joins the process group",
    "exception": "an exception",
    "warning": "a warning",
    "step": "an optimizer step, the same on all ranks",
    "end": "its end",
    "link": "the same collective",
    "lone": "a collective that some never call",
}


@dataclass
class _Lane:
    lines: list[RankLine]
    top: int

    @property
    def is_band(self) -> bool:
        return len(self.lines) > 1


def lanes(attempt: Attempt, blamed: Collection[int]) -> str:
    """The figure; `blamed` are the ranks that findings name, those of the gravest first."""
    folded = _folded(attempt.ranks, blamed)
    drawn = [_Lane(lines, n * _LANE) for n, lines in enumerate(folded)]
    span = attempt.seconds or 1.0
    ends = completed(attempt.ranks)
    height = _LANE * len(drawn)
    body = [part for lane in drawn for part in _group(lane, _lane(lane, ends, span))]
    names = "".join(_name(lane) for lane in drawn)
    links = _steps(drawn, span) + _links(drawn, attempt, span)
    used = {name for name in _LEGEND if any(f'"{name}' in part for part in (*body, links))}
    legend = "".join(
        f'<li><i class="{name}"></i>{said}</li>' for name, said in _LEGEND.items() if name in used
    )
    parting = _parting(attempt)
    parted = f' data-parting="{_x(parting, span):.3f}"' if parting is not None else ""
    return (
        f'<figure class="lanes" data-seconds="{span:.6f}" data-height="{height}"{parted}>'
        f'<ul class="legend">{legend}</ul>'
        f'<div class="axis" aria-hidden="true">{_axis(span)}</div>'
        f'<div class="plot"><svg viewBox="0 0 {_WIDTH} {height}" height="{height}" '
        f'preserveAspectRatio="none" role="img" aria-label="the ranks over {seconds(span)}, '
        f'told in the table of ranks below">{"".join(body)}<g aria-hidden="true">{links}</g></svg>'
        f'<ol class="names">{names}</ol></div>'
        '<div class="detail" aria-live="polite"></div></figure>'
    )


def _parting(attempt: Attempt) -> float | None:
    """When the first rank came to where it ended badly, or still is; None if none did."""
    bad = ("blocked", "exception")
    times = [mark.at for line in attempt.ranks for mark in line.marks if mark.kind in bad]
    return min(times, default=None)


def _folded(lines: tuple[RankLine, ...], blamed: Collection[int]) -> list[list[RankLine]]:
    if len(lines) <= _LANES:
        return [[line] for line in lines]
    kinds = {line.rank: (line.fate, line.place) for line in lines}
    alike = Counter(kinds.values())
    rare = [rank for rank, kind in kinds.items() if alike[kind] * 100 <= len(lines)]
    # Neither may crowd out the other: small findings may name every rank. Of many that fare the
    # same a band tells all.
    known = [rank for rank in blamed if rank in kinds]
    named_alike = Counter(kinds[rank] for rank in known)
    few = [rank for rank in known if named_alike[kinds[rank]] <= _ALONE // 2]
    ordered = dict.fromkeys([*few[: _ALONE // 2], *rare, *few])
    wanted = {*list(ordered)[:_ALONE]}
    alone = [[line] for line in lines if line.rank in wanted]
    others = [line for line in lines if line.rank not in wanted]
    size = -(-len(others) // _BANDS)
    return alone + [others[n : n + size] for n in range(0, len(others), size)]


def _group(lane: _Lane, parts: Iterable[str]) -> Iterator[str]:
    """What the script tells of a lane says whose it is; nobody is read a hundred bars in turn."""
    who = text(named([line.rank for line in lane.lines]))
    yield f'<g aria-hidden="true" data-who="{who}">'
    yield from parts
    yield "</g>"


def _name(lane: _Lane) -> str:
    first = lane.lines[0]
    fates = Counter(line.fate for line in lane.lines)
    told = first.fate
    if len(fates) > 1:
        told = ", ".join(f"{number} {fate}" for fate, number in fates.most_common(3))
    who = named([line.rank for line in lane.lines])
    ranks = f"{first.rank}-{lane.lines[-1].rank}"
    return f'<li data-ranks="{ranks}"><span><b>{text(who)}</b> {text(told)}</span></li>'


def _lane(lane: _Lane, ends: dict[CallKey, float], span: float) -> Iterator[str]:
    if lane.is_band:
        yield from _band(lane, ends, span)
        return
    (line,) = lane.lines
    if line.pid:
        last = max((mark.until for mark in line.marks), default=0.0)
        yield _bar("life", 0.0, last, lane.top, span, line.fate)
    for call in line.calls:
        if (end := ends.get(call.key, call.at)) > call.at:
            yield _bar("wait", call.at, end, lane.top, span, f"{call.op} #{call.seq}", call)
    # The long first: what is drawn later lies on top, and a point must not be hidden.
    for mark in sorted(line.marks, key=lambda mark: mark.at - mark.until):
        yield _bar(mark.kind, mark.at, mark.until, lane.top, span, mark.text, mark)


def _bar(
    kind: str,
    at: float,
    until: float,
    top: int,
    span: float,
    said: str,
    of: Mark | Call | None = None,
) -> str:
    place = of.place if of else None
    where = f" at {text(place)}" if place else ""
    lasted = f" for {seconds(until - at)}" if until - at >= 0.005 else ""
    title = f"<title>{seconds(at)}: {text(said)}{where}{lasted}</title>"
    source = f' data-at="{text(place)}"' if place else ""
    x = f"{_x(at, span):.3f}"
    if kind in _POINTS:
        return f'<path class="{kind}"{source} d="M{x} {top + _TOP - 2}v{_BAR + 4}">{title}</path>'
    width = f"{max(_LEAST, _x(until, span) - _x(at, span)):.3f}"
    return (
        f'<rect class="{kind}"{source} x="{x}" y="{top + _TOP}" width="{width}" height="{_BAR}">'
        f"{title}</rect>"
    )


def _band(lane: _Lane, ends: dict[CallKey, float], span: float) -> Iterator[str]:
    """How many of the ranks wait, from shade to shade."""
    last = max((mark.until for line in lane.lines for mark in line.marks), default=0.0)
    yield _bar("life", 0.0, last, lane.top, span, f"{len(lane.lines)} ranks")
    waiting = [(call.at, ends.get(call.key, call.at)) for w in lane.lines for call in w.calls]
    blocked = [(m.at, m.until) for w in lane.lines for m in w.marks if m.kind == "blocked"]
    yield from _shades("wait", waiting, lane, span)
    yield from _shades("blocked", blocked, lane, span)
    raised = sorted(m.at for w in lane.lines for m in w.marks if m.kind == "exception")
    for at in raised[:20]:
        yield _bar("exception", at, at, lane.top, span, "an exception")


def _shades(
    kind: str, spans: list[tuple[float, float]], lane: _Lane, total: float
) -> Iterator[str]:
    change = [0] * (_BINS + 2)
    for begin, end in spans:
        if end > begin:
            change[min(_BINS, int(begin / total * _BINS))] += 1
            change[min(_BINS, int(end / total * _BINS)) + 1] -= 1
    now, since, level = 0, 0, 0
    for place in range(_BINS + 1):
        now += change[place]
        share = min(1.0, now / len(lane.lines)) if place < _BINS else 0.0
        shade = -int(-share * _SHADES // 1)
        if shade != level:
            if level:
                begin, end = (total * n / _BINS for n in (since, place))
                said = f"up to {100 * level // _SHADES} % of {len(lane.lines)} ranks wait"
                bar = _bar(f"{kind} shade{level}", begin, end, lane.top, total, said)
                yield bar
            since, level = place, shade


def _links(drawn: list[_Lane], attempt: Attempt, span: float) -> str:
    """A line through all lanes at which the ranks have called the same collective."""
    points: dict[CallKey, list[str]] = {}
    called: Counter[CallKey] = Counter()
    for lane in drawn:
        here: dict[CallKey, float] = {}
        for line in lane.lines:
            for call in line.calls:
                if not call.alone:
                    here[call.key] = min(call.at, here.get(call.key, call.at))
                    called[call.key] += 1
        for key, at in here.items():
            points.setdefault(key, []).append(f"{_x(at, span):.3f} {lane.top + _TOP + _BAR // 2}")
    oldest: dict[str, int] = {}  # before it, calls of some rank are no longer kept
    for line in attempt.ranks:
        kept = {call.group: call.seq for call in reversed(line.calls)}
        oldest = {
            group: max(seq, oldest.get(group, 0)) for group, seq in {**oldest, **kept}.items()
        }
    parts = []
    for key, way in sorted(points.items(), key=lambda each: float(each[1][0].split()[0]))[-_MOST:]:
        group, seq, op = key
        lone = group == "0" and called[key] < attempt.world_size and seq >= oldest[group]
        said = text(f"{op} #{seq} of group {group}, called by {count(called[key], 'rank')}")
        if lone:
            path = f'class="lone" d="M{way[0].split()[0]} 0V{_LANE * len(drawn)}"'
        else:
            path = f'class="link" d="M{"L".join(way)}"'
        if lone or len(way) > 1:
            parts.append(f"<path {path}><title>{said}</title></path>")
    return "".join(parts)


def _steps(drawn: list[_Lane], span: float) -> str:
    """A line through all lanes at which the ranks came to the same optimizer step."""
    came: dict[str, list[tuple[float, int]]] = {}
    for lane in drawn:
        here: dict[str, float] = {}
        for mark in (m for line in lane.lines for m in line.marks if m.kind == "step"):
            here[mark.text] = min(mark.at, here.get(mark.text, mark.at))
        for said, at in here.items():
            came.setdefault(said, []).append((at, lane.top))
    parts = []
    for said, way in came.items():
        if len(way) > 1:
            path = "L".join(f"{_x(at, span):.3f} {top + _TOP + _BAR // 2}" for at, top in way)
            skew = seconds(max(way)[0] - min(way)[0])
            title = f"<title>{text(said)}, the last {skew} after the first</title>"
            parts.append(f'<path class="step" d="M{path}">{title}</path>')
    return "".join(parts)


def _axis(span: float) -> str:
    told = (at for at in ticks(0.0, span) if at <= span * 0.92)
    return "".join(f'<span style="left:{100 * at / span:.2f}%">{at:.6g} s</span>' for at in told)


def _x(at: float, span: float) -> float:
    return min(_WIDTH, _WIDTH * at / span)
