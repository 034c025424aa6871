"""Of many that are alike, those that are tried every time; the others wait for --thorough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar
from zlib import crc32

import pytest
from _pytest.mark.structures import ParameterSet

T = TypeVar("T")


def one_in(share: int, names: Iterable[T]) -> list[ParameterSet]:
    """All of them, as parameters; but for one in `share`, by its name, they are `thorough`."""
    return [
        pytest.param(name, id=str(name), marks=pytest.mark.thorough if _turn(name) % share else ())
        for name in names
    ]


def _turn(name: object) -> int:
    return crc32(str(name).encode())
