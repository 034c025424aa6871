"""What `ddpdoctor probe` measures. Times in seconds, sizes in bytes, rates in bytes per second."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ddpdoctor.catalog import Finding, Frozen


class RankFacts(Frozen):
    """One rank, where it runs, and how fast it is by itself."""

    rank: int
    host: str
    device: str
    torch: str
    rendezvous: float
    """From asking to join until all had joined."""
    compute: float = 0.0
    """Time of a fixed piece of arithmetic, repeated for a while, all ranks at it at once."""
    variables: dict[str, str] = Field(default={})
    """What of its environment must be the same on all ranks, with secrets replaced."""
    step: float = 0.0
    """The same of its own part of a DDP step: forward and backward, without the reduction."""
    compute_range: tuple[float, float] | None = None
    """The fastest and the slowest piece of that while."""
    step_range: tuple[float, float] | None = None
    compute_alone: float | None = None
    """The middle of the pieces, each without the time in which this rank got no CPU."""
    step_alone: float | None = None


class Check(Frozen):
    """A collective whose results were compared with the right ones."""

    operation: str
    dtype: str
    state: Literal["right", "wrong", "unsupported"]
    largest: int = 0
    """How many values of this type the largest message had that was compared."""
    detail: str = ""
    """Of a wrong one: where it was wrong first; of an unsupported one: what the backend says."""
    ranks: tuple[int, ...] = ()
    """Those on which it was wrong."""


class Point(Frozen):
    """One size of one collective."""

    operation: str
    size: int
    """Bytes as nccl-tests counts them: of the whole result, for all_gather and reduce_scatter."""
    seconds: float
    """Of one call among several in a row, on the slowest rank."""
    fastest: float
    """The same of the fastest row: what else the machine did has added the rest."""
    slowest: float = 0.0
    """The same of the slowest row."""
    alone: float | None = None
    """Of the fastest row, without the time in which the ranks got no CPU."""
    algorithm_bandwidth: float
    """size / seconds."""
    bus_bandwidth: float
    """The same, times what each link carries: 2(n-1)/n, (n-1)/n or 1 (nccl-tests)."""


class Link(Frozen):
    """A pair of ranks that sent each other messages, while no other rank did."""

    first: int
    second: int
    latency: float
    """Half of the time there and back of the smallest message, the fastest of several."""
    bandwidth: float
    lowest: float | None = None
    """Of the messages that took longer than three in four of them: how much it varies."""
    latency_alone: float | None = None
    bandwidth_alone: float | None = None
    """Both without the time in which the two ranks got no CPU: at least so good is the link."""


class HostClock(Frozen):
    """How far a host's clock is from that of rank 0's host, by an exchange as NTP does it."""

    host: str
    offset: float
    uncertainty: float
    """Half of the fastest way there and back."""


class Measured(Frozen):
    """All measurements of one probe."""

    world_size: int
    backend: str
    seconds: float
    """How long it took."""
    ranks: tuple[RankFacts, ...]
    checks: tuple[Check, ...]
    points: tuple[Point, ...]
    overhead: float
    """Of each call's time, what the probe itself needs: the time of a call that does nothing."""
    copy_bandwidth: float
    """What one rank copies in its own memory, read and write counted once: a ceiling."""
    links: tuple[Link, ...]
    links_measured: Literal["all", "some"]
    clocks: tuple[HostClock, ...]
    full_step: float
    """Median time of a whole DDP step, on the slowest rank."""


class ProbeReport(Frozen):
    """What a probe found."""

    measured: Measured | None
    """None where a rank was lost before the end."""
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...] = ()
    """What looks slow, and may be so only because the machine did other work as well."""
