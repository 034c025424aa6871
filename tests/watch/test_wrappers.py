"""What of a model's own source tells how it uses its parts."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from ddpdoctor.watch.wrappers import _uses


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(x)  # the tower's own


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.towers = nn.ModuleDict({"left": Tower(), "right": Tower()})
        self.scale = nn.Parameter(torch.ones(2))
        self.dead = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, side: str) -> torch.Tensor:
        def seen(y: torch.Tensor) -> torch.Tensor:
            return y * self.scale  # the scale

        return seen(self.towers[side](x))  # the towers


def test_the_lines_that_read_what_holds_a_parameter_are_known() -> None:
    source = Path(__file__).read_text("utf-8").splitlines()
    wanted = {
        "towers.left.proj.weight": ["the towers", "the tower's own"],
        "scale": ["the scale"],
        "dead.weight": [],
    }
    for name, comments in wanted.items():
        places = _uses(Net(), [name]) or []
        assert all(file == __file__ for file, *_ in places)
        assert [source[line - 1].partition("# ")[2] for _, line, _ in places] == comments
