"""What is noted of what goes into a reduction."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ddpdoctor.watch.averages import Averages
from ddpdoctor.watch.given import facts

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("values", "is_told", "counted"),
    [
        ([0.25], True, False),
        ([0.25, 0.5], True, False),
        ([0.25, 32.0], True, True),
        ([0.25, math.inf, math.nan], True, False),
        ([0.0, 32.0], False, False),
    ],
)
def test_a_count_among_the_numbers_is_known(
    values: list[float], is_told: bool, counted: bool
) -> None:
    found: dict[str, Any] = facts("all_reduce", (torch.tensor(values),), Averages())
    assert (bool(found["content"]), found["counted"]) == (is_told, counted)
