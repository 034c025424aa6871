"""What all measurements share: a group, a device, agreed counts, and times of the slowest rank."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from ddpdoctor.probe.progress import Progress


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

    def timed(self, work: Callable[[], object], budget: float, most: int = 50) -> float:
        """Median time of one call on the slowest rank, in calls that take `budget` s together.

        All ranks begin each call together; to wait for that is a part of the budget.
        """
        self._once(work)  # buffers are made and connections opened by the first call
        begun = time.perf_counter()
        self._once(work)
        first = self.agreed(time.perf_counter() - begun)
        count = int(max(3, min(most, budget / max(first, 1e-6))))
        times = [self._once(work) for _ in range(count)]
        return statistics.median(self.slowest(times))

    def _once(self, work: Callable[[], object]) -> float:
        self.together()
        begun = time.perf_counter()
        work()
        self.settle()
        return time.perf_counter() - begun
