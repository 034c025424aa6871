"""By what the means are multiplied that go backward, read from the graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from ddpdoctor.watch.factors import divisors, factors, outermost


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


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda p: p.sum() / 36, [1 / 3]),
        (lambda p: 2 * p.sum(1).sum() / torch.tensor(12), []),
        (lambda p: 3 * (p.sum() / torch.tensor([36]).sum()), [1.0]),
        (lambda p: p.sum() / 4, [1.0]),
        (lambda p: p.sum() / 8, []),
        (lambda p: -(p * torch.rand(4, 3)).sum() / 36, [1 / 3]),
        (lambda p: -(p * torch.rand(4, 3)).sum() / 12, []),
        (lambda p: (p * 2).sum() / 36, []),
        (
            lambda p: cross_entropy(p, torch.zeros(4, dtype=torch.long), reduction="sum") / 12,
            [1 / 3],
        ),
    ],
)
def test_a_sum_over_the_count_of_all_ranks_is_a_part_of_a_mean(
    monkeypatch: pytest.MonkeyPatch, loss: Callable[[Tensor], Tensor], expected: list[float]
) -> None:
    monkeypatch.setattr("ddpdoctor.watch.factors._ranks", lambda: 3)
    assert factors(loss(torch.rand(4, 3, requires_grad=True))) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda p: (p.norm() + p.mean()) / 2, 0.5),
        (lambda p: 3 * (p.norm() / 4).reshape(1), 0.75),
        (lambda p: p.norm() / 2 + p.mean(), 1.0),
        (lambda p: p.norm() / p.sum(), 1.0),
        (lambda p: 2 / p.norm(), 2.0),
    ],
)
def test_what_all_of_a_loss_is_multiplied_by_is_seen_whatever_it_is_made_of(
    loss: Callable[[Tensor], Tensor], expected: float
) -> None:
    assert outermost(loss(torch.rand(4, 3, requires_grad=True))) == pytest.approx(expected)


def test_all_that_a_loss_is_divided_by_is_told_apart() -> None:
    p = torch.rand(4, 3, requires_grad=True)
    assert divisors(0.5 * p.mean() / 4 / 8) == [8.0, 4.0]
    assert divisors(p.mean() / 4 + p.norm()) == []
    assert divisors(0.25 * p.mean()) == []
