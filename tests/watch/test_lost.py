"""What a collective is given is compared by its numbers; what is none differs from nothing."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ddpdoctor.watch import lost


@pytest.mark.parametrize(
    ("numbers", "is_digested"), [([1.0, 2.0], True), ([1.0, float("nan")], False)]
)
def test_numbers_are_digested_and_nan_is_not(numbers: list[float], is_digested: bool) -> None:
    fields: dict[str, Any] = {}
    log: Any = SimpleNamespace(steps=1, exiting=False)
    args = ([torch.tensor(numbers)], SimpleNamespace(asyncOp=False))
    lost.follow(log, "all_reduce", args, fields)
    assert ("input" in fields) is is_digested
