"""Latency and bandwidth of collectives by size, beside what one rank copies in its own memory.

Algorithm and bus bandwidth are those of nccl-tests (doc/PERFORMANCE.md there).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from ddpdoctor.probe.model import Point
from ddpdoctor.probe.talk import Talk
from ddpdoctor.report.words import in_bytes

SIZES = tuple(4**power for power in range(2, 14))  # 16 bytes to 64 MiB
_ALWAYS = 1 << 20
_COPY = 1 << 26
_LEAST = 2.0
"""Seconds of a budget, though nothing may be left: the curve of small sizes is always told."""


def points(talk: Talk, budget: float) -> list[Point]:
    """Every operation at every size, for about `budget` seconds; the large ones while they last."""
    begun, budget = time.monotonic(), max(_LEAST, talk.agreed(budget))
    shares = {size: 1 if size < _ALWAYS else 3 for size in SIZES}
    one = budget / (sum(shares.values()) * len(_OPERATIONS))
    found = []
    for number, (name, (prepare, factor)) in enumerate(_OPERATIONS.items(), 1):
        for size in SIZES:
            late = talk.agreed(time.monotonic() - begun) > budget * number / len(_OPERATIONS)
            if late and size > _ALWAYS:
                break
            talk.progress.tell("bandwidth", f"{name} of {in_bytes(size)}")
            each = one * shares[size]
            seconds, fastest, slowest, alone = talk.timed(prepare(talk, size), each)
            rate = size / seconds
            found.append(
                Point(
                    operation=name,
                    size=size,
                    seconds=seconds,
                    fastest=fastest,
                    slowest=slowest,
                    alone=alone,
                    algorithm_bandwidth=rate,
                    bus_bandwidth=rate * factor(talk.size),
                )
            )
            if seconds > each * 2:  # the next size would take four times as long
                break
    return found


def overhead(talk: Talk) -> float:
    """Seconds that the probe adds to the time of a call."""
    return talk.timed(lambda: None, 0.05).middle


def copy_bandwidth(talk: Talk) -> float:
    """Bytes per second that this rank copies, all ranks at it at once: the slowest one's."""
    source = torch.ones(_COPY // 4, device=talk.device)
    target = torch.empty_like(source)
    return _COPY / talk.timed(lambda: target.copy_(source), 0.3).middle


def _all_reduce(talk: Talk, size: int) -> Callable[[], object]:
    tensor = torch.zeros(size // 4, device=talk.device)
    return lambda: dist.all_reduce(tensor)


def _broadcast(talk: Talk, size: int) -> Callable[[], object]:
    tensor = torch.zeros(size // 4, device=talk.device)
    return lambda: dist.broadcast(tensor, 0)


def _all_gather(talk: Talk, size: int) -> Callable[[], object]:
    share = torch.zeros(max(1, size // 4 // talk.size), device=talk.device)
    whole = torch.zeros(len(share) * talk.size, device=talk.device)
    return lambda: dist.all_gather_into_tensor(whole, share)


_Prepare = Callable[[Talk, int], Callable[[], object]]
_OPERATIONS: dict[str, tuple[_Prepare, Callable[[int], float]]] = {
    "all_reduce": (_all_reduce, lambda n: 2 * (n - 1) / n),
    "all_gather": (_all_gather, lambda n: (n - 1) / n),
    "broadcast": (_broadcast, lambda _: 1.0),
}
