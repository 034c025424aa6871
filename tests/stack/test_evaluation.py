"""Results of a whole set, from shares that differ in length and in rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Results = Callable[..., list[Any]]


@pytest.mark.parametrize("length", [0, 2, 11])
def test_tables_of_any_number_of_rows_come_in_order_on_every_rank(
    results: Results, length: int
) -> None:
    alone = results("ragged", 1, length=length)
    gathered, predicted = alone[0]
    assert gathered == [[[index + 0.1] * 2] * (index % 5) for index in range(length)]
    assert len({len(table) for table in predicted}) > 1
    assert results("ragged", 3, length=length) == alone * 3
