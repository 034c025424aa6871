"""What `ddpdoctor probe` reports: tables, pictures as SVG, and the same as a PNG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ddpdoctor.probe.model import Link, Measured, Point, ProbeReport, RankFacts
from ddpdoctor.report import drawing
from ddpdoctor.report.model import Case, Group, Report, State
from ddpdoctor.report.output import OutputError
from ddpdoctor.report.words import count, in_bytes, one_line

_MATRIX = 16
"""Up to so many ranks the matrix of pairs is told whole."""
_STATES: dict[str, State] = {"right": "good", "wrong": "bad", "unsupported": "unknown"}


def told(report: ProbeReport) -> Report:
    """What every format shows of it: curves, pairs, ranks, a case for each collective, pictures."""
    if (measured := report.measured) is None:
        return Report(
            command="probe",
            verdict=summary(report),
            findings=report.findings,
            data=report.model_dump(mode="json", exclude={"findings"}),
        )
    pictures = [("Bus bandwidth by size", _curve_picture(measured))]
    pictures += [("Pairs of ranks", _pair_picture(measured))] if measured.links else []
    pictures += [("Time to compute, by rank", _rank_picture(measured))]
    return Report(
        command="probe",
        verdict=summary(report),
        notes=(
            f"A rank copies {_rate(measured.copy_bandwidth)} in its own memory: the ceiling.",
            f"Of the time of each call {measured.overhead * 1e9:.0f} ns are the probe's own.",
            *report.unchecked,
        ),
        findings=report.findings,
        groups=tuple(_groups(measured)),
        machine=_machine(measured),
        pictures=tuple(pictures),
        seconds=measured.seconds,
        data=report.model_dump(mode="json", exclude={"findings"}),
    )


def _groups(measured: Measured) -> Iterator[Group]:
    yield _checks(measured)
    yield _curves(measured)
    if measured.links and measured.world_size <= _MATRIX:
        yield _pairs(measured)
    elif measured.links:
        slowest = sorted(measured.links, key=lambda link: link.bandwidth)[:8]
        yield Group(
            title=f"The slowest of {len(measured.links)} pairs",
            columns=("ranks", "bandwidth", "latency"),
            rows=tuple((f"{p.first} and {p.second}", *_link(p)) for p in slowest),
        )
    yield Group(
        title="Ranks",
        columns=("rank", "host", "device", "matrix products", "forward and backward"),
        rows=(
            *(
                (str(r.rank), r.host, r.device, _seconds(r.compute), _seconds(r.step))
                for r in _worth_showing(measured)
            ),
            ("all", "", "a whole DDP step", "", _seconds(measured.full_step)),
        ),
    )


def _checks(measured: Measured) -> Group:
    cases = []
    for check in measured.checks:
        name, said = f"{check.operation} of {check.dtype}", one_line(check.detail)
        wrong = ("wrong", said, said) if check.state == "wrong" else None
        skipped = said or check.state if check.state == "unsupported" else ""
        cases.append(Case(name=name, classname="ddpdoctor.probe", failure=wrong, skipped=skipped))
    return Group(
        title="Results",
        columns=("operation", "result", "type", "what was wrong"),
        rows=tuple((c.operation, c.state, c.dtype, c.detail) for c in measured.checks),
        states=tuple(_STATES[check.state] for check in measured.checks),
        is_detail=True,
        cases=tuple(cases),
    )


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
    told += f"; {count(len(bad), 'problem')}"
    told += f", {len(report.unchecked)} not checked" if report.unchecked else ""
    return f"{told} ({report.measured.seconds:.1f} s)"


def _machine(measured: Measured) -> str:
    hosts = len({rank.host for rank in measured.ranks})
    where = f"{count(hosts, 'host')}" if hosts > 1 else measured.ranks[0].host
    joined = max(rank.rendezvous for rank in measured.ranks)
    return (
        f"{count(measured.world_size, 'rank')} on {where}, {measured.backend}, "
        f"{measured.ranks[0].device}, torch {measured.ranks[0].torch}; joined in {joined:.2f} s"
    )


def _curves(measured: Measured) -> Group:
    """A row for each size, and a column for each operation."""
    operations = list(dict.fromkeys(point.operation for point in measured.points))
    by_size = {(point.operation, point.size): point for point in measured.points}
    return Group(
        title="Bandwidth by size",
        note="The time of one call, and its bus bandwidth as nccl-tests define it.",
        columns=("size", *operations),
        rows=tuple(
            (in_bytes(size), *(_point(by_size.get((one, size))) for one in operations))
            for size in sorted({point.size for point in measured.points})
        ),
    )


def _point(point: Point | None) -> str:
    return f"{_seconds(point.seconds)}, {_rate(point.bus_bandwidth)}" if point else "-"


def _pairs(measured: Measured) -> Group:
    """Above the diagonal the rates, below it the latencies."""
    ranks = range(measured.world_size)
    by_pair = {(link.first, link.second): link for link in measured.links}

    def cell(row: int, column: int) -> str:
        pair = by_pair.get((min(row, column), max(row, column)))
        return _link(pair)[row > column] if pair else "-"

    return Group(
        title="Pairs",
        note="Bandwidth above the diagonal, latency below it.",
        columns=("", *map(str, ranks)),
        rows=tuple((f"rank {row}", *(cell(row, column) for column in ranks)) for row in ranks),
    )


def _link(link: Link) -> tuple[str, str]:
    return _rate(link.bandwidth), _seconds(link.latency)


def _worth_showing(measured: Measured) -> Sequence[RankFacts]:
    if measured.world_size <= _MATRIX:
        return measured.ranks
    return sorted(measured.ranks, key=lambda rank: -rank.compute)[:8]


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.4g} GB/s" if rate >= 1e8 else f"{rate / 1e6:.4g} MB/s"


def _power(rate: float) -> str:
    return f"{rate / 1e9:g} GB/s" if rate >= 1e9 else f"{rate / 1e6:g} MB/s"


def _curve_picture(measured: Measured) -> str:
    ceiling = measured.copy_bandwidth
    rates = [max(1.0, point.bus_bandwidth) for point in measured.points]
    low, high = math.floor(math.log10(min(rates))), math.ceil(math.log10(max([*rates, ceiling])))
    sizes = sorted({float(point.size) for point in measured.points})
    series: dict[str, list[drawing.Point]] = {}
    for p in measured.points:
        told = f"{in_bytes(p.size)}: {_rate(p.bus_bandwidth)}, {_seconds(p.seconds)}"
        series.setdefault(p.operation, []).append((p.size, max(1.0, p.bus_bandwidth), told))
    across = drawing.Axis([*sizes[:-1:2], sizes[-1]], in_bytes, math.log2)
    up = drawing.Axis([10.0**power for power in range(low, high + 1)], _power, math.log10)
    limit = (ceiling, "memory copy")
    return drawing.curves("bandwidth by size", series, across, up, limit)


def _pair_picture(measured: Measured) -> str:
    size = measured.world_size
    cell = max(4, min(64, 760 // size))
    rates = {(link.first, link.second): link for link in measured.links}
    best = max(link.bandwidth for link in measured.links)
    width = 40 + cell * size
    size_here = f'style="width:{width}px;min-width:0" viewBox="0 0 {width} {width}"'
    parts = [f'<svg {size_here} role="img" aria-label="pairs">']
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
    parts = [f'<svg viewBox="0 0 640 {22 * len(shown) + 4}" role="img" aria-label="ranks">']
    for number, rank in enumerate(shown):
        y = 22 * number
        length = max(1.0, rank.compute / slowest * 290)
        label = escape(one_line(f"rank {rank.rank} on {rank.host}")[:32])
        parts.append(
            f'<text x="0" y="{y + 15}">{label}</text><rect x="220" y="{y + 3}" '
            f'width="{length:.0f}" height="16" fill="var(--a)"/>'
            f'<text x="{228 + length:.0f}" y="{y + 15}">{_seconds(rank.compute)}</text>'
        )
    return f"{''.join(parts)}</svg><p class=dim>time of the same matrix products on each rank</p>"


def _draw_curves(axes: Any, measured: Measured) -> None:
    for operation in dict.fromkeys(point.operation for point in measured.points):
        points = [point for point in measured.points if point.operation == operation]
        axes.loglog(
            [point.size for point in points],
            [point.bus_bandwidth for point in points],
            marker="o",
            label=operation,
        )
    axes.axhline(measured.copy_bandwidth, linestyle="--", color="grey", label="memory copy")
    sizes = sorted({point.size for point in measured.points})
    axes.set_xticks(sizes[::2], [in_bytes(size) for size in sizes[::2]], rotation=30)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda rate, _: _power(rate))
    axes.grid(alpha=0.3)
    axes.set(title="bus bandwidth by size")
    axes.legend()


def _draw_pairs(axes: Any, measured: Measured) -> Any:
    size = measured.world_size
    matrix = [[math.nan] * size for _ in range(size)]
    for link in measured.links:
        for row, column in ((link.first, link.second), (link.second, link.first)):
            matrix[row][column] = link.bandwidth / 1e9
            if size <= _MATRIX:
                axes.text(column, row, f"{link.bandwidth / 1e9:.2f}", ha="center", va="center")
    axes.set(title="pairs, while no other rank speaks", xlabel="rank", ylabel="rank")
    _only_ranks(axes.xaxis, size)
    _only_ranks(axes.yaxis, size)
    return axes.imshow(matrix, cmap="RdYlGn", vmin=0)


def _draw_ranks(axes: Any, measured: Measured) -> None:
    shown = _worth_showing(measured)
    bars = axes.barh(range(len(shown)), [rank.compute * 1e3 for rank in shown])
    axes.bar_label(bars, [_seconds(rank.compute) for rank in shown], padding=3)
    axes.set_yticks(range(len(shown)), [f"{rank.rank} on {rank.host}"[:24] for rank in shown])
    axes.margins(x=0.2)
    axes.set(title="time to compute, by rank", xlabel="ms")
    axes.invert_yaxis()


def _only_ranks(axis: Any, size: int) -> None:
    """A mark for each rank, or for every so many."""
    axis.set_ticks(range(0, size, max(1, size // _MATRIX)))


def write_png(report: ProbeReport, path: Path) -> None:
    """The same curves and pairs as a picture. Raises OutputError."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    measured = report.measured
    figure, axes = pyplot.subplots(1, 3, figsize=(17, 5), constrained_layout=True)
    figure.suptitle(summary(report))
    if measured:
        _draw_curves(axes[0], measured)
        figure.colorbar(_draw_pairs(axes[1], measured), ax=axes[1], label="GB/s")
        _draw_ranks(axes[2], measured)
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        pyplot.close(figure)
