"""Passes that are added up before a step, and what each loss was divided by."""

from __future__ import annotations

import pytest

from ddpdoctor.evidence.events.losses import Loss
from tests.diagnose.test_silent_errors import at, ranks, said


@pytest.mark.parametrize(
    ("window", "divided", "factor", "told"),
    [
        ("nnns", (4.0, 4.0), 1 / 16, True),
        ("ssss", (4.0, 4.0), 1 / 16, True),
        ("nnns", (4.0,), 1 / 4, False),
        ("nnns", (4.0,), 1 / 16, False),  # a quarter of it is meant
        ("nnns", (4.0, 4.0), 1 / 4, False),  # a sum over four samples
        ("ns", (2.0, 2.0), 1 / 4, False),
        ("nns", (4.0, 4.0), 1 / 16, False),
        ("nnns", (4.0, 4.0, 4.0), 1 / 64, False),
    ],
)
def test_a_loss_is_divided_once_by_the_passes_before_a_step(
    window: str, divided: tuple[float, ...], factor: float, told: bool
) -> None:
    found = ranks({window: 8})
    for rank in found:
        rank.of(Loss).extend(
            Loss(step, 1.0, at(35), (factor,), factor, divided=divided) for step in range(1, 9)
        )
    assert ("DDP309" in [each.code for each in said(found)]) == told
    found[0].of(Loss).append(Loss(9, 1.0, at(36), (factor * 4,), factor * 4, divided=(4.0,)))
    assert "DDP309" not in [each.code for each in said(found)]
