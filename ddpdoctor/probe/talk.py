"""What all measurements share: a group, a device, agreed counts, and times of the slowest rank."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from ddpdoctor.probe.busy import kept_waiting, without
from ddpdoctor.probe.progress import Progress

_ROWS, _LEAST = 5, 3


class Timing(NamedTuple):
    """Seconds of one call: by the middle one of some rows, by the fastest and by the slowest."""

    middle: float
    fastest: float
    slowest: float
    alone: float
    """The fastest, without the time in which any rank got no CPU."""


@dataclass(frozen=True)
class Talk:
    """One rank's end of the group that is measured."""

    rank: int
    size: int
    device: torch.device
    progress: Progress

    def settle(self) -> None:
        """Wait until this rank's device has done what it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def together(self) -> None:
        """Wait for all ranks."""
        dist.barrier(device_ids=[self.device.index] if self.device.type == "cuda" else None)
        self.settle()

    def agreed(self, number: float) -> float:
        """Rank 0's number, on all ranks: what they decide by must not differ."""
        told = torch.tensor([number], dtype=torch.float64, device=self.device)
        dist.broadcast(told, 0)
        return float(told.item())

    def slowest(self, seconds: list[float]) -> list[float]:
        """Each entry's maximum over the ranks."""
        times = torch.tensor(seconds, dtype=torch.float64, device=self.device)
        dist.all_reduce(times, dist.ReduceOp.MAX)
        return [float(one) for one in times.tolist()]

    def added(self, seconds: list[float]) -> list[float]:
        """Each entry's sum over the ranks."""
        times = torch.tensor(seconds, dtype=torch.float64, device=self.device)
        dist.all_reduce(times)
        return [float(one) for one in times.tolist()]

    def gathered(self, value: Any) -> list[Any]:
        """Every rank's value, as JSON carries it, in the order of ranks."""
        text = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8)
        lengths = [torch.zeros(1, dtype=torch.int64, device=self.device) for _ in range(self.size)]
        dist.all_gather(lengths, torch.tensor([len(text)], dtype=torch.int64, device=self.device))
        longest = int(max(lengths).item())
        padded = torch.zeros(longest, dtype=torch.uint8, device=self.device)
        padded[: len(text)] = text.to(self.device)
        texts = [torch.zeros_like(padded) for _ in range(self.size)]
        dist.all_gather(texts, padded)
        return [
            json.loads(bytes(one[: int(length.item())].tolist()))
            for one, length in zip(texts, lengths, strict=True)
        ]

    def timed(self, work: Callable[[], object], budget: float, most: int = 2000) -> Timing:
        """Time of one call on the slowest rank, in calls that take about `budget` s together.

        Calls are made in a row, as in a training step and in nccl-tests: in some rows, which all
        ranks begin together, and of which the middle one counts.
        """
        self._row(work, 1)  # buffers are made and connections opened by the first call
        single = self.agreed(self._row(work, 1))
        if _LEAST * single < budget:  # calls in a row may take longer than one by itself
            single = self.agreed(self._row(work, _LEAST))
        count = int(max(_LEAST, min(most, budget / max(single, 1e-6))))
        begun, rows = time.monotonic(), min(_ROWS, count)
        times: list[float] = []
        # Not between rows: after such a look into /proc, a row of five small messages took 1.2 to
        # 1.6 times as long as the same row by a plain loop (two ranks, 1 and 64 KiB).
        before = kept_waiting()
        while len(times) < rows and self.agreed(time.monotonic() - begun) < budget:
            times.append(self._row(work, count // rows))
        waited = (kept_waiting() - before) / (count // rows)
        slowest = self.slowest(times)
        # One rank's wait after another's: each may have kept all the others.
        alone = without(self.added([waited])[0], sum(slowest)) / len(slowest)
        fastest = min(slowest)
        return Timing(statistics.median(slowest), fastest, max(slowest), min(alone, fastest))

    def _row(self, work: Callable[[], object], calls: int) -> float:
        """Seconds for each of so many calls."""
        self.together()
        begun = time.perf_counter()
        for _ in range(calls):
            work()
        self.settle()
        return (time.perf_counter() - begun) / calls
