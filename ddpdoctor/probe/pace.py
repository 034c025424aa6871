"""How fast each rank is by itself: the slowest one sets the pace of all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.environment.facts.cgroup import throttled
from ddpdoctor.environment.facts.machine import Machine
from ddpdoctor.probe.busy import kept_computing, without
from ddpdoctor.probe.talk import Talk

_ROUNDS = 9
_SUSTAINED, _PIECES = 0.12, 5
"""Seconds of work in each of so many pieces: a control group's quota lets a rank work at full speed
for a part of each tenth of a second, so that shorter work would not feel it."""


class Pace(NamedTuple):
    """Seconds of one call: the median of some pieces, and the fastest and the slowest of them."""

    middle: float
    range: tuple[float, float]
    alone: float
    """The median, without the time in which this rank got no CPU, but for what its quota took."""


def compute(talk: Talk) -> Pace:
    """Time of some matrix products on this rank, while all ranks compute."""
    side = 2048 if talk.device.type == "cuda" else 384
    matrix = torch.ones(side, side, device=talk.device)

    def work() -> None:
        nonlocal matrix
        for _ in range(4):
            matrix = (matrix @ matrix).clamp(0, 1)

    return _sustained(talk, work)


def steps(talk: Talk) -> tuple[Pace, float]:
    """Time of this rank's own part of a DDP step; the whole step on the slowest rank (median)."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers).to(talk.device))
    batch = torch.ones(64, 512, device=talk.device)

    def own_part() -> None:
        with model.no_sync():
            model(batch).sum().backward()

    own, whole = _sustained(talk, own_part), []
    for _ in range(_ROUNDS):
        talk.together()
        begun = time.perf_counter()
        model(batch).sum().backward()
        talk.settle()
        whole.append(time.perf_counter() - begun)
    model.zero_grad()
    return own, statistics.median(talk.slowest(whole[1:]))


def _sustained(talk: Talk, work: Callable[[], object]) -> Pace:
    """Time of one call on this rank, by pieces as long as they say above.

    All ranks do the same number of calls, by what the fastest of them needs for one.
    """
    single = min(_piece(talk, work, 1)[0] for _ in range(3))
    count = max(1, round(_SUSTAINED / max(1e-6, min(talk.gathered(single)))))
    pieces = [_piece(talk, work, count) for _ in range(_PIECES)]
    times = [seconds for seconds, _ in pieces]
    alone = statistics.median(without(waited, seconds) for seconds, waited in pieces)
    return Pace(statistics.median(times), (min(times), max(times)), alone)


def _piece(talk: Talk, work: Callable[[], object], count: int) -> tuple[float, float]:
    """Seconds of one call, and what of them this rank was kept waiting for a CPU by others."""
    talk.together()
    waited, held = kept_computing(), throttled(Machine({}))
    begun = time.perf_counter()
    for _ in range(count):
        work()
    talk.settle()
    seconds = time.perf_counter() - begun
    # Some kernels count as waiting what a control group's quota takes.
    waited = kept_computing() - waited - (throttled(Machine({})) - held)
    return seconds / count, max(0.0, waited) / count
