from __future__ import annotations

import collections

import torch
import torch.distributed as dist


class Meter:
    """Weighted running mean."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.state = torch.zeros(2, dtype=torch.float64)

    def update(self, value: float, n: int = 1) -> None:
        self.state += torch.tensor([value * n, n], dtype=torch.float64)

    def synchronize(self) -> "Meter":
        out = Meter()
        out.state = self.state.clone()
        if dist.is_available() and dist.is_initialized():
            dist.all_reduce(out.state)
        return out

    @property
    def mean(self) -> float:
        return (self.state[0] / self.state[1].clamp(min=1)).item()

    @property
    def count(self) -> int:
        return int(self.state[1])


class MeterBank(collections.defaultdict):
    def __init__(self) -> None:
        super().__init__(Meter)

    def reset(self) -> None:
        for m in self.values():
            m.reset()

    def snapshot(self) -> dict[str, float]:
        return {k: self[k].synchronize().mean for k in sorted(self)}
