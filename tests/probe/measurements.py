"""Measurements of a cluster with which nothing is wrong, and of the same with one thing changed."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

from ddpdoctor.probe.model import Check, Link, Measured, Point, RankFacts


def cluster(
    ranks: int,
    per_host: int,
    *,
    bandwidth: Callable[[int, int], float] = lambda _a, _b: 1e9,
    compute: Callable[[int], float] = lambda _: 0.01,
    **changes: Any,
) -> Measured:
    facts = tuple(
        RankFacts(
            rank=rank,
            host=f"node{rank // per_host}",
            device="CPU",
            torch="2.13.0",
            rendezvous=0.1,
            compute=compute(rank),
            step=compute(rank),
        )
        for rank in range(ranks)
    )
    links = tuple(
        Link(first=a, second=b, latency=3e-5, bandwidth=bandwidth(a, b))
        for a, b in combinations(range(ranks), 2)
    )
    size = 1 << 20
    point = Point(
        operation="all_reduce",
        size=size,
        seconds=0.001,
        fastest=0.001,
        algorithm_bandwidth=size / 0.001,
        bus_bandwidth=size / 0.001,
    )
    measured = Measured(
        world_size=ranks,
        backend="gloo",
        seconds=20.0,
        ranks=facts,
        checks=(Check(operation="all_reduce", dtype="float32", state="right"),),
        points=(point,),
        overhead=1e-6,
        copy_bandwidth=1e10,
        links=links,
        links_measured="all",
        clocks=(),
        full_step=0.02,
    )
    return measured.model_copy(update=changes)
