"""What became slower since an earlier probe: by more than either of the two varied in itself."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ddpdoctor.catalog import Finding
from ddpdoctor.probe.finding import finding
from ddpdoctor.probe.model import Link, Measured, Point, ProbeReport, RankFacts
from ddpdoctor.report.model import earlier

SLOWER = 1.5
"""Times as long, in the median over all sizes: less is noise from run to run."""
SLOWER_LINK, SLOWER_WITHIN = 2.0, 3.0
"""Times as slow, between hosts and within one, whose links are as fast as its CPUs are free."""


class NotComparable(Exception):
    """The earlier report is of another world; the message says why."""


def read(path: Path) -> Measured:
    """The measurements of an earlier report. Raises NotComparable and Unreadable."""
    measured = earlier(path, "probe", _measured)
    if measured is None:
        raise NotComparable(f"{path} is of a probe that lost a rank before it had measured")
    return measured


def _measured(data: Mapping[str, Any]) -> Measured | None:
    return ProbeReport.model_validate({"findings": (), **data}).measured


def slower(now: Measured, then: Measured) -> tuple[list[Finding], list[str]]:
    """What takes longer than it did; and what may do so only because its ranks got no CPU.

    Raises NotComparable.
    """
    for what in ("world_size", "backend"):
        if getattr(now, what) != getattr(then, what):
            raise NotComparable(
                f"the earlier probe had {what} {getattr(then, what)}, this one {getattr(now, what)}"
            )
    all_in_all, by_itself = dict(_slower(now, then)), dict(_slower(_alone(now), then))
    return [found for what, found in all_in_all.items() if what in by_itself], [
        f"Not checked: whether {what} became slower; ranks were kept waiting for a CPU by other "
        "work."
        for what in all_in_all
        if what not in by_itself
    ]


def _slower(now: Measured, then: Measured) -> Iterator[tuple[str, Finding]]:
    yield from _collectives(now, then)
    yield from _links(now, then)
    yield from _ranks(now, then)


def _alone(now: Measured) -> Measured:
    """As fast as it is at least, were the ranks given a CPU whenever they could use one."""

    def rank(one: RankFacts) -> RankFacts:
        compute, step = one.compute_alone or one.compute, one.step_alone or one.step
        return one.model_copy(
            update={
                "compute": compute,
                "step": step,
                "compute_range": one.compute_range and (compute, one.compute_range[1]),
                "step_range": one.step_range and (step, one.step_range[1]),
            }
        )

    def link(one: Link) -> Link:
        return one.model_copy(update={"bandwidth": one.bandwidth_alone or one.bandwidth})

    def point(one: Point) -> Point:
        return one.model_copy(update={"fastest": one.alone or one.fastest})

    return now.model_copy(
        update={
            "points": tuple(map(point, now.points)),
            "links": tuple(map(link, now.links)),
            "ranks": tuple(map(rank, now.ranks)),
        }
    )


def _collectives(now: Measured, then: Measured) -> Iterator[tuple[str, Finding]]:
    """They use the same ways: one that is slower alone met what else the machine did just then."""
    found = list(_operations(now, then))
    measured = {point.operation for point in now.points}
    yield from found if 2 * len(found) > len(measured) else ()


def _operations(now: Measured, then: Measured) -> Iterator[tuple[str, Finding]]:
    before = {(point.operation, point.size): point for point in then.points}
    for operation in dict.fromkeys(point.operation for point in now.points):
        # Its fastest time against the usual one then: only what lasts all the while is slower.
        ratios = {
            point.size: point.fastest / before[operation, point.size].seconds
            for point in now.points
            if point.operation == operation and (operation, point.size) in before
        }
        beyond = [
            point.fastest > before[operation, point.size].slowest
            for point in now.points
            if point.size in ratios and point.operation == operation
        ]
        if (
            ratios
            and statistics.median(ratios.values()) >= SLOWER
            and 2 * sum(beyond) > len(beyond)
        ):
            worst = max(ratios, key=lambda size: ratios[size])
            yield (
                operation,
                finding(
                    "DDP724",
                    "warning",
                    f"{operation} takes {statistics.median(ratios.values()):.1f} times as long as "
                    "then",
                    "See what else uses the network, and which link became slow.",
                    notes=(f"most at {worst} bytes: {ratios[worst]:.1f} times",),
                ),
            )


def _links(now: Measured, then: Measured) -> Iterator[tuple[str, Finding]]:
    before = {(link.first, link.second): link for link in then.links}
    host = [rank.host for rank in now.ranks]
    for link in now.links:
        old = before.get((link.first, link.second))
        within = host[link.first] == host[link.second]
        times = SLOWER_WITHIN if within else SLOWER_LINK
        if (
            old
            and link.bandwidth * times <= old.bandwidth
            and link.bandwidth < (old.lowest or old.bandwidth)
        ):
            what = f"the link of ranks {link.first} and {link.second}"
            yield (
                what,
                finding(
                    "DDP724",
                    "warning",
                    f"{what} gives {link.bandwidth / 1e6:.0f} MB/s, then {old.bandwidth / 1e6:.0f}",
                    "Look at the way between the two: cable, port, switch, interface.",
                    ranks=(link.first, link.second),
                ),
            )


def _ranks(now: Measured, then: Measured) -> Iterator[tuple[str, Finding]]:
    for rank, old in zip(now.ranks, then.ranks, strict=True):
        ranges = (rank.compute_range, old.compute_range), (rank.step_range, old.step_range)
        varied = any(_reach_each_other(now_, then_) for now_, then_ in ranges)
        if not varied and min(rank.compute / old.compute, rank.step / old.step) >= SLOWER:
            what = f"rank {rank.rank} on {rank.host}"
            yield (
                what,
                finding(
                    "DDP724",
                    "warning",
                    f"{what} computes {rank.compute / old.compute:.1f} times slower than then",
                    "See whether its CPU or GPU is throttled, by heat, power or a quota.",
                    ranks=(rank.rank,),
                ),
            )


def _reach_each_other(now: tuple[float, float] | None, then: tuple[float, float] | None) -> bool:
    """Whether the fastest piece now was no slower than the slowest one then."""
    return now is not None and then is not None and now[0] <= then[1]
