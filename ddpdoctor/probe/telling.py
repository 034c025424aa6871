"""`ddpdoctor probe` for people and machines: text, JSON, and pictures as HTML and PNG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ddpdoctor.catalog import Finding
from ddpdoctor.probe.model import Measured, Point, ProbeReport, RankFacts
from ddpdoctor.report.model import Case, Group, Report, render
from ddpdoctor.report.output import OutputError, Page
from ddpdoctor.report.words import count, one_line

_LOOKS = {"error": ("✗", "bold red"), "warning": ("!", "yellow"), "info": ("·", "cyan")}
_MATRIX = 16
"""Up to so many ranks the matrix of pairs is printed whole."""


def rendered(chosen: str, report: ProbeReport, page: Page) -> str:
    """The report in the format of this name."""
    if chosen == "json":
        return report.model_dump_json(indent=2) + "\n"
    return as_text(report, page) if chosen == "text" else render(told(report), chosen)


def told(report: ProbeReport) -> Report:
    """What every format shows of it: a case for each collective, the ranks, and the pictures."""
    if (measured := report.measured) is None:
        return Report("probe", summary(report), report.findings, ddpdoctor=report.ddpdoctor)
    ranks = Group(
        "Ranks",
        columns=("rank", "host", "device", "matrix products", "forward and backward"),
        rows=[
            (str(r.rank), r.host, r.device, _seconds(r.compute), _seconds(r.step))
            for r in _worth_showing(measured)
        ],
    )
    curves = Group(
        "Bandwidth by size",
        columns=("operation", "size", "time", "bus bandwidth"),
        rows=[
            (p.operation, _size(p.size), _seconds(p.seconds), _rate(p.bus_bandwidth))
            for p in measured.points
        ],
    )
    pictures = [("Bus bandwidth by size", _curve_picture(measured))]
    pictures += [("Pairs of ranks", _pair_picture(measured))] if measured.links else []
    pictures += [("Ranks", _rank_picture(measured))]
    return Report(
        command="probe",
        verdict=summary(report),
        findings=report.findings,
        groups=[_checks(measured), curves, ranks],
        machine=_heading(measured).removeprefix("ddpdoctor probe  "),
        pictures=pictures,
        seconds=measured.seconds,
        ddpdoctor=report.ddpdoctor,
    )


def _checks(measured: Measured) -> Group:
    cases = []
    for check in measured.checks:
        name, said = f"{check.operation} of {check.dtype}", one_line(check.detail)
        wrong = ("wrong", said, said) if check.state == "wrong" else None
        skipped = said or check.state if check.state == "unsupported" else ""
        cases.append(Case(name, "ddpdoctor.probe", failure=wrong, skipped=skipped))
    return Group(
        "Results",
        columns=("operation", "result", "type", "what was wrong"),
        rows=[(c.operation, c.state, c.dtype, c.detail) for c in measured.checks],
        loud=frozenset(n for n, c in enumerate(measured.checks) if c.state == "wrong"),
        cases=cases,
    )


def as_text(report: ProbeReport, page: Page | None = None) -> str:
    """Curves, pairs, ranks, findings and a sentence."""
    parts: list[RenderableType] = []
    if measured := report.measured:
        copied = f"{_rate(measured.copy_bandwidth)} is what a rank copies in its own memory"
        parts += [Text(_heading(measured), "bold"), Text(), _curves(measured)]
        parts += [Text(f"ceiling: {copied}", "dim"), Text()]
        if measured.links:
            parts += [_pairs(measured), Text()]
        parts += [_ranks(measured), Text()]
    for finding in report.findings:
        parts += [_told(finding), Text()]
    return (page or Page()).lay_out(*parts, Text(summary(report), "bold"))


def summary(report: ProbeReport) -> str:
    """The last line."""
    bad = [finding for finding in report.findings if finding.severity != "info"]
    if report.measured is None:
        return "the probe ended before it had measured"
    right = [check for check in report.measured.checks if check.state == "right"]
    refused = [check for check in report.measured.checks if check.state == "unsupported"]
    told = f"{len(right)} of {len(report.measured.checks) - len(refused)} checks gave right values"
    if refused:
        told += f", {len(refused)} are not supported by {report.measured.backend}"
    return f"{told}; {count(len(bad), 'problem')} ({report.measured.seconds:.1f} s)"


def _heading(measured: Measured) -> str:
    hosts = len({rank.host for rank in measured.ranks})
    where = f"{count(hosts, 'host')}" if hosts > 1 else measured.ranks[0].host
    joined = max(rank.rendezvous for rank in measured.ranks)
    return (
        f"ddpdoctor probe  {count(measured.world_size, 'rank')} on {where}, {measured.backend}, "
        f"{measured.ranks[0].device}, torch {measured.ranks[0].torch}; joined in {joined:.2f} s"
    )


def _curves(measured: Measured) -> Table:
    operations = list(dict.fromkeys(point.operation for point in measured.points))
    by_size = {(point.operation, point.size): point for point in measured.points}
    table = Table.grid(padding=(0, 2))
    table.add_row(
        Text("size", "dim"),
        *(Text(f"{one}: time, bus", "dim", justify="right") for one in operations),
    )
    for size in sorted({point.size for point in measured.points}):
        cells = [by_size.get((operation, size)) for operation in operations]
        table.add_row(Text(_size(size), justify="right"), *map(_cell, cells))
    return table


def _cell(point: Point | None) -> Text:
    if point is None:
        return Text("")
    shown = f"{_seconds(point.seconds):>9}  {_rate(point.bus_bandwidth):>10}"
    return Text(shown, justify="right")


def _pairs(measured: Measured) -> Table:
    table = Table.grid(padding=(0, 2))
    size = measured.world_size
    if size > _MATRIX:
        slowest = sorted(measured.links, key=lambda link: link.bandwidth)[:8]
        table.add_row(Text(f"slowest of {len(measured.links)} pairs", "dim"))
        for link in slowest:
            table.add_row(
                Text(f"ranks {link.first} and {link.second}"),
                Text(_rate(link.bandwidth), justify="right"),
                Text(_seconds(link.latency), justify="right"),
            )
        return table
    by_pair = {(link.first, link.second): link for link in measured.links}
    table.add_row(Text("pairs", "dim"), *(Text(f"{rank}", justify="right") for rank in range(size)))
    for row in range(size):
        cells = []
        for column in range(size):
            pair = by_pair.get((min(row, column), max(row, column)))
            # Above the diagonal the rates, below it the latencies.
            shown = "" if pair is None else _rate(pair.bandwidth)
            if pair and row > column:
                shown = _seconds(pair.latency)
            cells.append(Text(shown, justify="right"))
        table.add_row(Text(f"rank {row}"), *cells)
    return table


def _ranks(measured: Measured) -> Table:
    table = Table.grid(padding=(0, 2))
    words = ("rank", "host", "device", "matrix products", "forward and backward")
    table.add_row(*(Text(word, "dim") for word in words))
    for rank in _worth_showing(measured):
        table.add_row(
            Text(str(rank.rank)),
            Text(one_line(rank.host)),
            Text(one_line(rank.device)),
            Text(_seconds(rank.compute), justify="right"),
            Text(_seconds(rank.step), justify="right"),
        )
    table.add_row(Text(""), Text("all"), Text("a DDP step"), Text(""), _right(measured.full_step))
    return table


def _worth_showing(measured: Measured) -> Sequence[RankFacts]:
    if measured.world_size <= _MATRIX:
        return measured.ranks
    return sorted(measured.ranks, key=lambda rank: -rank.compute)[:8]


def _right(seconds: float) -> Text:
    return Text(_seconds(seconds), justify="right")


def _told(finding: Finding) -> Text:
    mark, style = _LOOKS[finding.severity]
    said = Text(f"{mark} {finding.code} {one_line(finding.cause)}", style)
    for note in finding.evidence:
        said.append(f"\n  note: {one_line(note)}", "dim not bold")
    said.append(f"\n  help: {one_line(finding.cure.text)}", "not bold")
    for command in finding.cure.commands:
        said.append(f"\n  $ {one_line(command)}", "cyan not bold")
    said.append(f"\n  more: ddpdoctor explain {finding.code}", "dim not bold")
    return said


def _size(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s" if rate >= 1e8 else f"{rate / 1e6:.2f} MB/s"


_Scale = Callable[[float], float]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 860, 320, 80, 40


def _curve_picture(measured: Measured) -> str:
    operations = list(dict.fromkeys(point.operation for point in measured.points))
    sizes = [point.size for point in measured.points]
    rates = [max(1.0, point.bus_bandwidth) for point in measured.points]
    low = math.floor(math.log10(min(rates)))
    high = math.ceil(math.log10(max([*rates, measured.copy_bandwidth])))
    first, last = math.log2(min(sizes)), math.log2(max(sizes)) or 1.0

    def across(size: float) -> float:
        return _LEFT + (math.log2(size) - first) / max(1e-9, last - first) * (_WIDTH - _LEFT - 140)

    def up(rate: float) -> float:
        share = (math.log10(max(1.0, rate)) - low) / max(1, high - low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - 20)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="bandwidth by size">']
    for power in range(low, high + 1):
        y = up(10.0**power)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - 130}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="var(--line)"/><text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_rate(10.0**power)}</text>"
        )
    for size in sorted(set(sizes))[::2]:
        parts.append(
            f'<text x="{across(size):.1f}" y="{_HEIGHT - 16}" text-anchor="middle">'
            f"{_size(size)}</text>"
        )
    for number, operation in enumerate(operations):
        points = [point for point in measured.points if point.operation == operation]
        parts.append(_line(points, across, up, f"var(--{'abc'[number % 3]})"))
    y = up(measured.copy_bandwidth)
    parts.append(
        f'<line x1="{_LEFT}" x2="{_WIDTH - 130}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--dim)" '
        f'stroke-dasharray="5 4"/><text x="{_WIDTH - 124}" y="{y + 4:.1f}">memory copy</text>'
    )
    return "".join((*parts, "</svg>"))


def _line(points: Sequence[Point], across: _Scale, up: _Scale, colour: str) -> str:
    places = [(across(one.size), up(one.bus_bandwidth)) for one in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{_size(one.size)}: '
        f"{_rate(one.bus_bandwidth)}, {_seconds(one.seconds)}</title></circle>"
        for one, (x, y) in zip(points, places, strict=True)
    )
    x, y = places[-1]
    label = f'<text x="{x + 8:.1f}" y="{y + 4:.1f}">{escape(points[0].operation)}</text>'
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}{label}'
    )


def _pair_picture(measured: Measured) -> str:
    size = measured.world_size
    cell = max(4, min(64, 760 // size))
    rates = {(link.first, link.second): link for link in measured.links}
    best = max(link.bandwidth for link in measured.links)
    width = 40 + cell * size
    parts = [f'<svg viewBox="0 0 {width} {width}" width="{width}" role="img" aria-label="pairs">']
    for row in range(size):
        if cell >= 14 or row % 16 == 0:
            middle = 40 + (row + 0.5) * cell
            parts.append(f'<text x="34" y="{middle + 4:.0f}" text-anchor="end">{row}</text>')
            parts.append(f'<text x="{middle:.0f}" y="30" text-anchor="middle">{row}</text>')
        for column in range(size):
            link = rates.get((min(row, column), max(row, column)))
            if link is None:
                continue
            share = link.bandwidth / best
            colour = f"hsl({int(8 + 122 * share)} 60% 50%)"
            x, y = 40 + column * cell, 40 + row * cell
            told = (
                f"{link.first} and {link.second}: {_rate(link.bandwidth)}, {_seconds(link.latency)}"
            )
            parts.append(
                f'<rect x="{x}" y="{y}" width="{cell - 1}" height="{cell - 1}" fill="{colour}">'
                f"<title>{told}</title></rect>"
            )
            if cell >= 48:
                parts.append(
                    f'<text x="{x + cell / 2:.0f}" y="{y + cell / 2 + 4:.0f}" '
                    f'text-anchor="middle" style="fill:#000">{link.bandwidth / 1e9:.2f}</text>'
                )
    caption = "GB/s between two ranks while no other speaks; green is the fastest pair"
    return f"{''.join(parts)}</svg><p class=dim>{caption}</p>"


def _rank_picture(measured: Measured) -> str:
    slowest = max(rank.compute for rank in measured.ranks) or 1.0
    shown = list(measured.ranks)
    if len(shown) > 64:
        shown = sorted(shown, key=lambda rank: -rank.compute)[:64]
    parts = [f'<svg viewBox="0 0 {_WIDTH} {22 * len(shown) + 4}" role="img" aria-label="ranks">']
    for number, rank in enumerate(shown):
        y = 22 * number
        length = max(1.0, rank.compute / slowest * 480)
        label = escape(one_line(f"rank {rank.rank} on {rank.host}")[:32])
        parts.append(
            f'<text x="0" y="{y + 15}">{label}</text><rect x="220" y="{y + 3}" '
            f'width="{length:.0f}" height="16" fill="var(--a)"/>'
            f'<text x="{228 + length:.0f}" y="{y + 15}">{_seconds(rank.compute)}</text>'
        )
    return f"{''.join(parts)}</svg><p class=dim>time of the same matrix products on each rank</p>"


def write_png(report: ProbeReport, path: Path) -> None:
    """The same curves and pairs as a picture. Raises OutputError."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    measured = report.measured
    figure, axes = pyplot.subplots(1, 3, figsize=(17, 5), constrained_layout=True)
    figure.suptitle(summary(report))
    if measured:
        for operation in dict.fromkeys(point.operation for point in measured.points):
            points = [point for point in measured.points if point.operation == operation]
            axes[0].loglog(
                [point.size for point in points],
                [point.bus_bandwidth for point in points],
                marker="o",
                label=operation,
            )
        axes[0].axhline(measured.copy_bandwidth, linestyle="--", color="grey", label="memory copy")
        axes[0].set(xlabel="bytes", ylabel="bus bandwidth, bytes per second")
        axes[0].legend()
        size = measured.world_size
        matrix = [[math.nan] * size for _ in range(size)]
        for link in measured.links:
            matrix[link.first][link.second] = link.bandwidth / 1e9
            matrix[link.second][link.first] = link.bandwidth / 1e9
        drawn = axes[1].imshow(matrix, cmap="RdYlGn", vmin=0)
        figure.colorbar(drawn, ax=axes[1], label="GB/s")
        axes[1].set(title="pairs", xlabel="rank", ylabel="rank")
        axes[2].barh(
            [rank.rank for rank in measured.ranks], [rank.compute * 1e3 for rank in measured.ranks]
        )
        axes[2].set(title="matrix products", xlabel="ms", ylabel="rank")
        axes[2].invert_yaxis()
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        pyplot.close(figure)
