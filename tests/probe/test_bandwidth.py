"""The curve of bandwidth by size, where what came before has taken all the time."""

from types import SimpleNamespace
from typing import Any

import torch

from ddpdoctor.probe import bandwidth


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
