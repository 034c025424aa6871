"""Parameters beside DDP have one name on all ranks, in whatever order their modules are found."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from torch import nn

from ddpdoctor.watch.outside import _search


class Critic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))


@pytest.mark.parametrize("order", [list, lambda found: list(found)[::-1]])
def test_of_two_modules_that_hold_the_same_the_outer_one_names_it(
    monkeypatch: pytest.MonkeyPatch, order: Callable[[list[nn.Module]], list[nn.Module]]
) -> None:
    critic = Critic()
    monkeypatch.setattr(gc, "get_objects", lambda: order(list(critic.modules())))
    names = _search(list(critic.parameters()))
    assert sorted(names.values()) == [
        "Critic.net.0.bias",
        "Critic.net.0.weight",
        "Critic.net.2.bias",
        "Critic.net.2.weight",
    ]
