"""What the measurements mean: results that are wrong, and the link or the rank that is slow."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import named
from ddpdoctor.probe.finding import finding
from ddpdoctor.probe.model import Link, Measured, RankFacts

SLOW_LINK = 3.0
"""A link is slow that gives this part of what the best links of its kind give."""
FAR_LINK = 4.0
"""The same for latency, ..."""
FAR_AT_LEAST = 300e-6
"""... which must differ by this much, too: below it the scheduler decides."""
SLOW_RANK = 2.0
_CLOCKS_APART = 0.1


def judge(measured: Measured) -> list[Finding]:
    """Everything that is wrong or slow, worst first; the same measurements, the same list."""
    found = [
        *_wrong_results(measured),
        *_mixed_versions(measured),
        *_unlike_variables(measured),
        *_slow_links(measured),
        *_slow_ranks(measured),
        *_clocks_apart(measured),
    ]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda one: order[one.severity])


def _wrong_results(measured: Measured) -> Iterator[Finding]:
    for check in measured.checks:
        if check.state == "wrong":
            yield finding(
                "DDP720",
                "error",
                f"{check.operation} of {check.dtype} gives wrong results on {named(check.ranks)}",
                "Take another backend or version; report it with the output of `ddpdoctor env`.",
                ranks=check.ranks,
                notes=(check.detail, f"backend: {measured.backend}"),
                proven=True,
            )


def _mixed_versions(measured: Measured) -> Iterator[Finding]:
    versions = {rank.torch for rank in measured.ranks}
    if len(versions) > 1:
        by_version = [
            f"torch {version}: "
            + named([one.rank for one in measured.ranks if one.torch == version])
            for version in sorted(versions)
        ]
        yield finding(
            "DDP110",
            "error",
            f"ranks have {len(versions)} different versions of torch",
            "Install the same torch on every host.",
            notes=by_version,
            proven=True,
        )


def _unlike_variables(measured: Measured) -> Iterator[Finding]:
    names = {name for rank in measured.ranks for name in rank.variables}
    for name in sorted(names):
        by_value: dict[str, list[int]] = {}
        for rank in measured.ranks:
            by_value.setdefault(rank.variables.get(name, "not set"), []).append(rank.rank)
        if len(by_value) > 1:
            fewest = min(by_value.values(), key=len)
            yield finding(
                "DDP719",
                "warning",
                f"{name} differs between ranks",
                "Set it in the file that starts the job on all of them.",
                ranks=fewest,
                notes=[f"{value}: {named(ranks)}" for value, ranks in by_value.items()],
                proven=True,
            )


def _slow_links(measured: Measured) -> Iterator[Finding]:
    host = {rank.rank: rank.host for rank in measured.ranks}
    for kind in (True, False):
        links = [one for one in measured.links if (host[one.first] == host[one.second]) is kind]
        slow = [link for link in links if _is_slow(link, links)]
        yield from _named(slow, links, measured)


def _is_slow(link: Link, links: Sequence[Link]) -> bool:
    best = _near_best([one.bandwidth for one in links])
    nearest = -_near_best([-one.latency for one in links])
    far = link.latency > FAR_LINK * nearest and link.latency - nearest > FAR_AT_LEAST
    return link.bandwidth * SLOW_LINK < best or far


def _near_best(values: list[float]) -> float:
    """The upper quartile: one link that is better than all others is no measure for them."""
    ordered = sorted(values)
    return ordered[-1 - len(ordered) // 4] if ordered else 0.0


def _named(slow: list[Link], links: Sequence[Link], measured: Measured) -> Iterator[Finding]:
    """By the rank whose links are all slow, else by the link."""
    left = list(slow)
    for rank in range(measured.world_size):
        own = [link for link in links if rank in (link.first, link.second)]
        mine = [link for link in left if rank in (link.first, link.second)]
        others = [link for link in links if rank not in (link.first, link.second)]
        if len(own) > 1 and len(mine) == len(own) and any(one not in slow for one in others):
            left = [link for link in left if link not in mine]
            facts = measured.ranks[rank]
            yield finding(
                "DDP721",
                "warning",
                f"all links of rank {rank} on {facts.host} are slow",
                "Look at that host's cable, port and interface.",
                ranks=(rank,),
                notes=[_told(link, links) for link in mine[:4]],
                commands=("ddpdoctor env",),
            )
    for link in left:
        ends = [measured.ranks[link.first], measured.ranks[link.second]]
        yield finding(
            "DDP721",
            "warning",
            f"the link of rank {link.first} ({ends[0].host}) and rank {link.second} "
            f"({ends[1].host}) is slow",
            "Look at the way between the two: cable, port, switch, PCIe, interface.",
            ranks=(link.first, link.second),
            notes=(_told(link, links),),
        )


def _told(link: Link, links: Sequence[Link]) -> str:
    best = _near_best([one.bandwidth for one in links])
    return (
        f"{link.first}-{link.second}: {link.bandwidth / 1e6:.0f} MB/s and "
        f"{link.latency * 1e6:.0f} µs; the best of its kind give {best / 1e6:.0f} MB/s"
    )


def _slow_ranks(measured: Measured) -> Iterator[Finding]:
    for rank in measured.ranks:
        others = [one for one in measured.ranks if one.rank != rank.rank]
        if not others:
            continue
        ratio = _times_slower(rank, others)
        if ratio >= SLOW_RANK:
            yield finding(
                "DDP722",
                "warning",
                f"rank {rank.rank} on {rank.host} computes {ratio:.1f} times slower than others",
                "See what else runs there, and whether its CPU or GPU is throttled.",
                ranks=(rank.rank,),
                notes=(
                    f"matrix products: {rank.compute * 1e3:.2f} ms, the others' median "
                    f"{statistics.median(one.compute for one in others) * 1e3:.2f} ms",
                    f"forward and backward: {rank.step * 1e3:.2f} ms, the others' median "
                    f"{statistics.median(one.step for one in others) * 1e3:.2f} ms",
                    "each step of DDP takes as long as its slowest rank",
                ),
                commands=("nvidia-smi -q -d PERFORMANCE",) if rank.device != "CPU" else (),
            )


def _times_slower(rank: RankFacts, others: Sequence[RankFacts]) -> float:
    # Both kinds of work must agree, and the fastest pieces of each: what else a machine does makes
    # healthy ranks slower now and then, and a slow one is slow all the while.
    def ratio(seconds: Callable[[RankFacts], float]) -> float:
        return seconds(rank) / max(1e-9, statistics.median(map(seconds, others)))

    return min(
        ratio(lambda one: one.compute_range[0] if one.compute_range else one.compute),
        ratio(lambda one: one.step_range[0] if one.step_range else one.step),
    )


def _clocks_apart(measured: Measured) -> Iterator[Finding]:
    for clock in measured.clocks:
        if abs(clock.offset) > max(_CLOCKS_APART, 2 * clock.uncertainty):
            ahead = "ahead" if clock.offset > 0 else "behind"
            yield finding(
                "DDP718",
                "info",
                f"the clock of {clock.host} is {abs(clock.offset):.1f} s {ahead} of rank 0's host",
                "Start a time daemon, such as chrony, on every host.",
                notes=("harmless for training: but the times in the hosts' logs do not compare",),
            )
