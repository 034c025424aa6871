"""By what the means are multiplied that go backward, read from the graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ddpdoctor.watch.factors import factors


def dice(p: Tensor) -> Tensor:
    return 1 - (2 * (p * p).sum(0) / (p.sum(0) + 1)).mean()


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda p: p.mean(), [1.0]),
        (lambda p: p.pow(2).mean() / 2, [0.5]),
        (lambda p: dice(p) / 2, [0.5]),
        (lambda p: 1 - 3 * p.mean(), [3.0]),
        (lambda p: torch.rsub(p.mean(), 1, alpha=4), [4.0]),
        (lambda p: 1 - p.sum(), []),
        (lambda p: 1 - p.norm() / 2, []),
    ],
)
def test_a_mean_that_is_taken_from_a_number_is_as_large_as_it_was(
    loss: Callable[[Tensor], Tensor], expected: list[float]
) -> None:
    assert factors(loss(torch.rand(4, 3, requires_grad=True))) == pytest.approx(expected)
