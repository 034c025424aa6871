"""What the user's own sampler goes by is read off its code and its attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset

from ddpdoctor.diagnose import loaders
from ddpdoctor.evidence import Loader, Place
from ddpdoctor.watch.loading import _deals
from tests.diagnose.data_simulation import loader

FIRST = 16


class Dealt(Sampler[int]):
    def __init__(self, part: int, base: int) -> None:
        self.part, self.base, self.seen = part, base, 0

    def __iter__(self) -> Iterator[int]:
        torch.manual_seed(self.base)
        order = torch.randperm(FIRST)
        yield from order[self.part :: 2].tolist()


def kin(*of: tuple[int, int]) -> loaders.Kin:
    return {rank: made(Dealt(*each)) for rank, each in enumerate(of)}


def made(dealer: Dealt) -> Loader:
    dealt = DataLoader(TensorDataset(torch.zeros(FIRST)), 4, sampler=dealer)
    found = {name: (number, Place(*at)) for name, (number, *at) in (_deals(dealt) or {}).items()}
    return replace(loader(), deals=found)


@pytest.mark.parametrize(
    ("of", "by", "but_ranks"),
    [
        ([(0, 7), (1, 7)], ["part"], []),
        ([(0, 7), (1, 8)], ["base", "part"], ["base"]),
        ([(0, 7), (0, 7)], [], []),
    ],
)
def test_a_number_that_differs_is_told_where_it_is_read(
    of: list[tuple[int, int]], by: list[str], but_ranks: list[str]
) -> None:
    found = list(loaders.dealers(kin(*of)))
    assert [each.doing.rpartition(" ")[2] for each in found] == by
    lines = [
        each.place.line - Dealt.__iter__.__code__.co_firstlineno for each in found if each.place
    ]
    assert lines == [{"base": 1, "part": 3}[name] for name in by]
    unlike = loaders.dealers(kin(*of), by_rank=False)
    assert [each.doing.rpartition(" ")[2] for each in unlike] == but_ranks


def test_a_sampler_of_torch_goes_by_nothing_of_the_users() -> None:
    assert _deals(DataLoader(TensorDataset(torch.zeros(FIRST)), 4, shuffle=True)) == {}
