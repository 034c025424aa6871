"""The curve of bandwidth by size, where what came before has taken all the time."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddpdoctor.probe import bandwidth
from ddpdoctor.probe.progress import Progress
from ddpdoctor.probe.talk import Talk


def test_small_sizes_are_measured_though_no_time_is_left() -> None:
    talk: Any = SimpleNamespace(
        size=2,
        device=torch.device("cpu"),
        agreed=lambda number: number,
        timed=lambda *_: (1e-3, 1e-3, 1e-3, 1e-3),
        progress=SimpleNamespace(tell=lambda *_: None),
    )
    points = bandwidth.points(talk, -5.0)
    sizes = [one.size for one in points if one.operation == "broadcast"]
    assert sizes[-1] >= 1 << 20
    assert sizes == list(bandwidth.SIZES[: len(sizes)])


class Alone(Talk):
    """One rank that nobody waits for."""

    def together(self) -> None:
        pass

    def agreed(self, number: float) -> float:
        return number

    def slowest(self, seconds: list[float]) -> list[float]:
        return seconds

    added = slowest


def test_nobody_looks_into_proc_between_the_rows_that_are_timed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Calls after such a look took up to 1.6 times as long: a plain loop takes none."""
    happened: list[str] = []

    def look() -> float:
        happened.append("look")
        return 0.0

    monkeypatch.setattr("ddpdoctor.probe.talk.kept_waiting", look)
    talk = Alone(0, 1, torch.device("cpu"), Progress(0, tmp_path / "stage"))
    talk.timed(lambda: happened.append("call"), 60.0, most=10)
    first, last = happened.index("look"), len(happened) - 1
    assert happened[last] == "look"
    assert happened[first + 1 : last] == ["call"] * 10
