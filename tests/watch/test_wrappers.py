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


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = Tower()
        self.named = Named()

    def forward(this, x: torch.Tensor) -> torch.Tensor:
        return this.named.embed(this.tower(x))  # both


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(2, 2)
        self.spare = nn.Linear(2, 2)

    def embed(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x)  # the table

    def decode(self, x: torch.Tensor) -> torch.Tensor:
        return self.spare(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.towers = nn.ModuleDict({"left": Tower(), "right": Tower()})
        self.scale = nn.Parameter(torch.ones(2))
        self.dead = nn.Linear(2, 2)
        self.norm = nn.LayerNorm(2)
        self.reset()

    def reset(self) -> None:
        nn.init.ones_(self.scale)

    @property
    def normed(self) -> nn.LayerNorm:
        return self.norm  # the norm

    def forward(self, x: torch.Tensor, side: str) -> torch.Tensor:
        x = self.normed(x / x.norm(dim=-1, keepdim=True))

        def seen(y: torch.Tensor) -> torch.Tensor:
            return y * self.scale  # the scale

        return seen(self.towers[side](x))  # the towers


def test_the_lines_that_read_what_holds_a_parameter_are_known() -> None:
    source = Path(__file__).read_text("utf-8").splitlines()
    net = {
        "towers.left.proj.weight": ["the towers", "the tower's own"],
        "scale": ["the scale"],
        "norm.weight": ["the norm"],
        "dead.weight": [],
    }
    held = {
        "tower.proj.bias": ["both", "the tower's own"],
        "named.table.weight": ["both", "the table"],
        "named.spare.weight": ["both"],
    }
    for model, wanted in ((Net(), net), (Held(), held)):
        for name, comments in wanted.items():
            places = _uses(model, [name]) or []
            assert all(file == __file__ for file, *_ in places)
            assert [source[line - 1].rpartition("# ")[2] for _, line, _ in places] == comments
