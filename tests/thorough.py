"""Of many that are alike, those that are tried every time; the others wait for --thorough."""

from __future__ import annotations

import os
from collections.abc import Iterable
from zlib import crc32

import pytest

THOROUGH = "DDPDOCTOR_TEST_THOROUGH"
"""Is set where tests run with --thorough."""


def one_in(share: int, cases: Iterable[object]) -> list[object]:
    """All of them, as parameters; but for one in `share`, by its name, they are `thorough`."""
    return [_case(each, crc32(str(each).encode()) % share == 0) for each in cases]


def first_of(cases: Iterable[object]) -> list[object]:
    """All of them, as parameters; but for the first, they are `thorough`."""
    return [_case(each, number == 0) for number, each in enumerate(cases)]


def thorough(*cases: object) -> list[object]:
    """As parameters that all wait for --thorough."""
    return [_case(each, False) for each in cases]


def examples(number: int) -> int:
    """So many with --thorough; a third of them every time."""
    return number if THOROUGH in os.environ else number // 3


def _case(case: object, everyday: bool) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=() if everyday else pytest.mark.thorough)
