"""What the measurements mean: results that are wrong, and the link or the rank that is slow."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import named
from ddpdoctor.probe.finding import finding
from ddpdoctor.probe.model import Link, Measured, RankFacts
from ddpdoctor.report.gravity import gravest_first

SLOW_LINK = 3.0
"""A link is slow that gives this part of what the best links of its kind give."""
FAR_LINK = 4.0
"""The same for latency, ..."""
FAR_AT_LEAST = 300e-6
"""... which must differ by this much, too: below it the scheduler decides."""
SLOW_RANK = 2.0
_CLOCKS_APART = 0.1


def judge(measured: Measured) -> list[Finding]:
    """Everything that is wrong or slow, worst first; the same measurements, the same list.

    What is slow only by the time in which its ranks got no CPU is not found, but `unchecked`.
    """
    found = [
        *_wrong_results(measured),
        *_mixed_versions(measured),
        *_unlike_variables(measured),
        *_slow_links(measured),
        *_slow_ranks(measured),
        *_clocks_apart(measured),
    ]
    return gravest_first(found)


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
                certainty="proven",
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
            certainty="proven",
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
                certainty="proven",
            )


def unchecked(measured: Measured) -> list[str]:
    """The links that may look slow only because their ranks got no CPU, in a sentence each."""
    return [
        f"Not checked: whether the link of ranks {link.first} and {link.second} is slow; they "
        "were kept waiting for a CPU by other work."
        for links in _kinds(measured)
        for link in _accused(links, measured.world_size).unsure
    ]


def _kinds(measured: Measured) -> Iterator[list[Link]]:
    """Links within hosts, and those between them: neither is a measure for the other."""
    host = {rank.rank: rank.host for rank in measured.ranks}
    for kind in (True, False):
        yield [one for one in measured.links if (host[one.first] == host[one.second]) is kind]


class _Accused(NamedTuple):
    """Ranks whose links all look slow; other links that are slow, and such as only look so."""

    ranks: list[int]
    links: list[Link]
    unsure: list[Link]


def _accused(links: Sequence[Link], size: int) -> _Accused:
    slow = [one for one in links if _is_slow(one, links)]
    sure = [one for one in slow if _is_slow(_alone(one), links)]
    ranks, left = [], list(slow)
    for rank in range(size):
        own = [link for link in links if rank in (link.first, link.second)]
        mine = [link for link in left if rank in (link.first, link.second)]
        others = [link for link in links if rank not in (link.first, link.second)]
        all_look_slow = len(own) > 1 and len(mine) == len(own)
        if all_look_slow and any(one in sure for one in mine) and not set(others) <= set(slow):
            ranks.append(rank)
            left = [link for link in left if link not in mine]
    return _Accused(
        ranks, [one for one in left if one in sure], [one for one in left if one not in sure]
    )


def _slow_links(measured: Measured) -> Iterator[Finding]:
    for links in _kinds(measured):
        yield from _named(_accused(links, measured.world_size), links, measured)


def _alone(link: Link) -> Link:
    """As it is at least, were its ranks given a CPU whenever they could use one."""
    return link.model_copy(
        update={
            "bandwidth": link.bandwidth_alone or link.bandwidth,
            "latency": link.latency_alone or link.latency,
        }
    )


def _is_slow(link: Link, links: Sequence[Link]) -> bool:
    best = _near_best([one.bandwidth for one in links])
    nearest = -_near_best([-one.latency for one in links])
    far = link.latency > FAR_LINK * nearest and link.latency - nearest > FAR_AT_LEAST
    return link.bandwidth * SLOW_LINK < best or far


def _near_best(values: list[float]) -> float:
    """The upper quartile: one link that is better than all others is no measure for them."""
    ordered = sorted(values)
    return ordered[-1 - len(ordered) // 4] if ordered else 0.0


def _named(accused: _Accused, links: Sequence[Link], measured: Measured) -> Iterator[Finding]:
    """By the rank whose links are all slow, else by the link."""
    for rank in accused.ranks:
        mine = [link for link in links if rank in (link.first, link.second)]
        yield finding(
            "DDP721",
            "warning",
            f"all links of rank {rank} on {measured.ranks[rank].host} are slow",
            "Look at that host's cable, port and interface.",
            ranks=(rank,),
            notes=[_told(link, links) for link in mine[:4]],
            commands=("ddpdoctor env",),
        )
    for link in accused.links:
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

    fastest = min(
        ratio(lambda one: one.compute_range[0] if one.compute_range else one.compute),
        ratio(lambda one: one.step_range[0] if one.step_range else one.step),
    )
    if not all(one.compute_alone and one.step_alone for one in (rank, *others)):
        return fastest
    # Where all are disturbed alike, and far more than the slow one is slow.
    alone = ratio(lambda one: one.compute_alone or 0.0), ratio(lambda one: one.step_alone or 0.0)
    return max(fastest, min(alone))


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
