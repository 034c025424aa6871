"""The canvases, and what augmentation does to them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.detection.augmentation import overlaid, shifted, strongly_augmented
from ddpdoctor.stack.detection.digits import (
    AugmentedCanvases,
    Canvases,
    Digits,
    compose,
    load_digits,
)
from ddpdoctor.stack.detection.scene import SIDE, Scene, collate


@pytest.fixture(scope="module")
def digits() -> Digits:
    return load_digits(0)[0]


def same(one: Scene, other: Scene) -> bool:
    return all(
        torch.equal(a, b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True)
    )


def test_the_sets_share_no_digit_and_together_are_all(digits: Digits) -> None:
    parts = load_digits(0)
    assert [len(part.labels) for part in parts] == [1439, 179, 179]
    known = [{pixels.numpy().tobytes() for pixels in part.pixels} for part in parts]
    assert sum(map(len, known)) == len(set().union(*known))
    assert 0 <= digits.pixels.min() < digits.pixels.max() == 1


def test_a_box_is_drawn_tightly_around_each_digit(digits: Digits) -> None:
    for index in range(60):
        scene = compose(digits, [0, index])
        assert len(scene.boxes) == len(scene.labels) <= 4
        rest = scene.image[0].clone()
        for box in (scene.boxes * SIDE).round().int().tolist():
            inside = scene.image[0, box[1] : box[3], box[0] : box[2]]
            assert 5 <= max(inside.shape) <= 16
            # The first and last row and column of a box hold ink.
            for edge in (inside[0], inside[-1], inside[:, 0], inside[:, -1]):
                assert edge.max() > 0.1
            rest[box[1] : box[3], box[0] : box[2]] = 0
        assert rest.max() <= 0.15, "ink outside of all boxes"


def test_some_canvases_are_empty_and_none_is_like_another(digits: Digits) -> None:
    scenes = Canvases(digits, 100, [0]).scenes
    assert 1 <= sum(len(scene.labels) == 0 for scene in scenes) <= 15
    drawn = [scene.image.numpy().tobytes() for scene in scenes if len(scene.labels)]
    assert len(set(drawn)) == len(drawn)


def test_the_same_seed_is_the_same_canvas(digits: Digits) -> None:
    assert same(compose(digits, [3, 7]), compose(digits, [3, 7]))
    assert not same(compose(digits, [3, 7]), compose(digits, [3, 8]))


def one_object(x: int, y: int, size: int) -> Scene:
    image = torch.zeros(1, SIDE, SIDE)
    image[:, y : y + size, x : x + size] = 1
    box = torch.tensor([[x, y, x + size, y + size]]) / SIDE
    return Scene(image, box, torch.tensor([3]))


@given(st.integers(0, 22), st.integers(0, 22), st.integers(-8, 8), st.integers(-8, 8))
def test_what_is_shifted_takes_its_box_along(x: int, y: int, right: int, down: int) -> None:
    moved = shifted(one_object(x, y, 10), right, down)
    left_over = moved.image.sum().item() / 100
    if left_over < 0.55:
        assert len(moved.boxes) == 0
    if len(moved.boxes):
        low_x, low_y, high_x, high_y = (moved.boxes[0] * SIDE).round().int().tolist()
        inside = moved.image[0, low_y:high_y, low_x:high_x]
        assert inside.min() == 1
        assert inside.sum() == moved.image.sum()


def test_scenes_that_are_overlaid_hold_the_objects_of_both() -> None:
    both = overlaid(one_object(2, 2, 8), one_object(15, 15, 10))
    assert both.image.sum() == 64 + 100
    assert len(both.boxes) == len(both.labels) == 2


def test_augmentation_stops_at_its_epoch_and_follows_from_seed_epoch_and_number(
    digits: Digits,
) -> None:
    canvases = Canvases(digits, 12, [0])
    one, other = (AugmentedCanvases(canvases, stop_epoch=2, seed=5) for _ in range(2))
    seen = []
    for epoch in range(4):
        one.set_epoch(epoch)
        other.set_epoch(epoch)
        forwards = [one[index] for index in range(12)]
        backwards = [other[index] for index in reversed(range(12))]
        assert all(map(same, forwards, reversed(backwards)))
        seen.append(forwards)
    assert not any(map(same, seen[0], seen[1]))
    assert not any(map(same, seen[1], canvases.scenes))
    assert all(map(same, seen[2], canvases.scenes))
    assert all(map(same, seen[3], canvases.scenes))


@given(st.integers(0, 10_000))
def test_an_augmented_scene_is_still_one(seed: int) -> None:
    generator = np.random.default_rng(seed)
    scene = strongly_augmented(one_object(3, 3, 9), one_object(20, 18, 8), generator)
    assert 0 <= scene.image.min() <= scene.image.max() <= 1
    assert ((scene.boxes >= 0) & (scene.boxes <= 1)).all()
    assert (scene.boxes[:, :2] < scene.boxes[:, 2:]).all()
    assert len(scene.boxes) == len(scene.labels)


def test_a_batch_says_which_object_is_in_which_image(digits: Digits) -> None:
    empty = Scene(torch.zeros(1, SIDE, SIDE), torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64))
    batch = collate([one_object(1, 1, 5), empty, overlaid(*[one_object(9, 9, 5)] * 2)])
    assert (len(batch), batch.weight, batch.scene.tolist()) == (3, 3, [0, 2, 2])
    nothing = collate([])
    assert (len(nothing), nothing.weight) == (0, 0)
