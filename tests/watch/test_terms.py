"""Of how many terms a number is a mean is seen by values, whatever they are called."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from ddpdoctor.watch.terms import terms

ROWS = torch.tensor([[0.5, 0.25], [0.125, 2.0], [0.75, 0.5]])


class Options(dict[str, float]):
    """What it has not raises another error than attributes do."""

    __getattr__ = dict.__getitem__


def of_rows(mean: torch.Tensor, **held: object) -> int | None:
    options = Options(rate=0.5)
    assert options.rate
    return terms(mean)


@pytest.mark.parametrize(
    ("mean", "held", "many"),
    [
        (ROWS.mean(0), ROWS, 3),
        (ROWS.mean(), ROWS, 6),
        ((ROWS > 0.4).float().mean(), ROWS > 0.4, 6),
        (torch.tensor(0.55), [0.5, 0.25, 0.9], 3),
        (torch.tensor(0.55), [torch.tensor(0.5), torch.tensor(0.25), torch.tensor(0.9)], 3),
        (torch.tensor(7 / 12), SimpleNamespace(right=7, all=12, best=0.5), 12),
        (torch.tensor([7 / 12]), SimpleNamespace(sum=torch.tensor(7.0), count=12), 12),
        (torch.tensor(2 / 3), SimpleNamespace(right=2, rows=ROWS), 3),
        (ROWS.sum(0), ROWS, 0),
        (torch.tensor(7.0 * 12), SimpleNamespace(mean=7.0, count=12), 0),
        (torch.tensor(1.0), SimpleNamespace(right=12, all=12), 0),
        (torch.tensor(0.3), ["0.3", "0.3"], 0),
    ],
)
def test_terms(mean: torch.Tensor, held: object, many: int) -> None:
    assert of_rows(mean, held=held) == many


def test_what_nobody_holds_any_more_is_not_known() -> None:
    assert terms(torch.tensor(0.41)) == 0
