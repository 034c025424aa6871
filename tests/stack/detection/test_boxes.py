"""Boxes and how much of them is shared."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.detection.boxes import centred, corners, overlaps

# Corners on a grid of 12 x 12 cells, which can be counted.
edges = st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(1, 12), st.integers(1, 12))
boxes = edges.filter(lambda b: b[0] < b[2] and b[1] < b[3])


def cells(box: tuple[int, int, int, int]) -> set[tuple[int, int]]:
    return {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}


@given(boxes, boxes)
def test_overlaps_are_those_that_one_counts(
    one: tuple[int, int, int, int], other: tuple[int, int, int, int]
) -> None:
    iou, generalised = overlaps(torch.tensor(one).double(), torch.tensor(other).double())
    shared, union = cells(one) & cells(other), cells(one) | cells(other)
    around = (max(one[2], other[2]) - min(one[0], other[0])) * (
        max(one[3], other[3]) - min(one[1], other[1])
    )
    expected = len(shared) / len(union)
    assert iou.item() == pytest.approx(expected)
    assert generalised.item() == pytest.approx(expected - (around - len(union)) / around)


@given(boxes)
def test_corners_and_centres_are_two_ways_to_say_one_thing(box: tuple[int, int, int, int]) -> None:
    there = torch.tensor(box).double()
    assert torch.equal(corners(centred(there)), there)


def test_boxes_that_do_not_meet_still_pull_at_each_other() -> None:
    one = torch.tensor([0.0, 0.0, 1.0, 1.0], requires_grad=True)
    overlaps(one, torch.tensor([3.0, 0.0, 4.0, 1.0]))[1].backward()
    assert one.grad is not None
    assert one.grad[2] > 0  # the right edge wants to move to the right


def test_a_box_of_no_size_gives_numbers() -> None:
    point = torch.zeros(4, requires_grad=True)
    generalised = overlaps(point, torch.zeros(4))[1]
    generalised.backward()
    assert generalised.isfinite()
    assert point.grad is not None
    assert point.grad.isfinite().all()
