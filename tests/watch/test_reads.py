"""Which of the numbers that a script reads off tensors are written down."""

from __future__ import annotations

import sys
from typing import Any

from torch.utils.data import DataLoader, Dataset

from ddpdoctor.watch.averages import Averages
from ddpdoctor.watch.reads import _Reads


class Log:
    """Of a rank that has trained."""

    def __init__(self) -> None:
        self.steps = 1
        self.read: list[float] = []
        self.averages = Averages()

    def way(self, frame: Any) -> int:
        return 0

    def write(self, kind: str, *, value: str, **_: Any) -> None:
        self.read.append(float.fromhex(value))


class Cropped(Dataset[float]):
    """Reads a number of chance for each sample."""

    def __init__(self, reads: _Reads) -> None:
        self._reads = reads

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> float:
        self._reads.note(sys._getframe(), lambda: float(index))
        return float(index)


def test_what_a_sample_is_made_by_is_no_metric() -> None:
    log = Log()
    reads = _Reads(log)  # type: ignore[arg-type]
    for batch in DataLoader(Cropped(reads), batch_size=2):
        reads.note(sys._getframe(), batch.sum)
    assert log.read == [1.0, 5.0]
