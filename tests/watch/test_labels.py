"""To look at what a frame holds leaves nothing behind in it."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from ddpdoctor.watch import labels


def reduced(tensor: Tensor) -> dict[str, Any]:
    return labels.facts("all_reduce", ([tensor], None), 3) or {}


def words(found: dict[str, Any]) -> dict[str, list[str]]:
    return {name.rpartition(".")[2]: more for name, *more in found.get("labels", [])}


@pytest.fixture(autouse=True)
def untraced() -> Any:
    """A debugger, or what measures coverage, is another reader of frames."""
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


def test_a_word_and_the_keys_of_what_is_reduced_are_told() -> None:
    name, hits = "train", {"cat": 3.0, "dog": 5.0}
    found = words(reduced(torch.tensor(list(hits.values()))))
    assert found["name"] == [name]
    assert found["hits[]"] == ["cat", "dog"]


def test_keys_of_other_numbers_or_in_another_order_are_not() -> None:
    hits = {"cat": 3.0, "dog": 5.0}
    assert "hits[]" not in words(reduced(torch.tensor([5.0, 3.0])))
    assert "hits[]" not in words(reduced(torch.tensor(list(hits.values())) + 1))


def test_what_a_frame_holds_lives_no_longer_for_it() -> None:
    held = torch.ones(3)
    gone = weakref.ref(held)
    reduced(torch.ones(2))
    del held
    assert gone() is None


def test_who_has_asked_for_his_variables_has_what_he_got() -> None:
    first = "first"
    given = locals()
    before = dict(given)
    later = "later"
    reduced(torch.ones(2))
    assert given == before
    assert (first, later) == ("first", "later")
