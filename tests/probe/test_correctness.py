"""The check of values: what one rank finds wrong keeps it from no collective of the others."""

from types import SimpleNamespace
from typing import Any

import torch

from ddpdoctor.environment.redaction import first_line
from ddpdoctor.probe import correctness


def test_an_error_that_says_nothing_is_told_by_its_type() -> None:
    assert first_line(RuntimeError()) == "RuntimeError"
    assert first_line(ValueError("\nfirst\nsecond")) == "first"


def test_a_rank_with_a_wrong_value_still_takes_part_in_what_the_others_do() -> None:
    seen: list[int] = []

    def wrong_at_seven(case: Any) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(case.size)
        return case.mine + (case.size == 7), case.mine

    talk: Any = SimpleNamespace(rank=1, size=2, device=torch.device("cpu"), settle=lambda: None)
    told = correctness._refused_and_wrong(talk, wrong_at_seven, "int32", correctness.SIZES)
    assert seen == list(correctness.SIZES)
    assert told == ("", "7 values: [0] is 2, not 1")
    check = correctness._check("all_reduce", "int32", 7, [("", ""), told])
    assert (check.state, check.ranks) == ("wrong", (1,))
