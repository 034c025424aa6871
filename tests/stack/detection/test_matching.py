"""Who claims which object, and the loss of that."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.stack.config import parse
from ddpdoctor.stack.detection.boxes import centred, corners, overlaps
from ddpdoctor.stack.detection.matching import detection_loss_sum, focal, match
from ddpdoctor.stack.detection.model import Detector, ModelConfig, detect
from ddpdoctor.stack.detection.scene import SIDE, Batch, Scene, collate
from ddpdoctor.stack.errors import ConfigError


def random_case(seed: int, counts: list[int], cells: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)

    def some_boxes(*shape: int) -> torch.Tensor:
        return corners(torch.rand(*shape, 4, generator=generator, dtype=torch.float64) * 0.5 + 0.1)

    total = sum(counts)
    batch = Batch(
        images=torch.zeros(len(counts), 1, SIDE, SIDE),
        boxes=some_boxes(total),
        labels=torch.randint(3, (total,), generator=generator),
        scene=torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)),
    )
    logits = torch.randn(len(counts), cells, 3, generator=generator, dtype=torch.float64)
    return logits, some_boxes(len(counts), cells), batch  # type: ignore[return-value]


def cost(logits: torch.Tensor, boxes: torch.Tensor, batch: Batch, cells: list[int]) -> float:
    """What an assignment costs in all, said once more, without any matrix."""
    total = 0.0
    for thing, cell in enumerate(cells):
        scene, label = batch.scene[thing], batch.labels[thing]
        found, true = boxes[scene, cell], batch.boxes[thing]
        total -= 2 * logits[scene, cell, label].sigmoid().item()
        total += 5 * (centred(found) - centred(true)).abs().sum().item()
        total -= 2 * overlaps(found, true)[1].item()
    return total


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_no_other_way_to_claim_the_objects_is_cheaper(seed: int, counts: list[int]) -> None:
    logits, boxes, batch = random_case(seed, counts, cells=4)
    claimed = match(logits, boxes, batch).tolist()
    for scene, count in enumerate(counts):
        mine = [c for c, s in zip(claimed, batch.scene.tolist(), strict=True) if s == scene]
        assert len(set(mine)) == count, "an object without a cell of its own"
        here = batch.scene == scene
        alone = Batch(batch.images, batch.boxes[here], batch.labels[here], batch.scene[here])
        best = min(cost(logits, boxes, alone, list(c)) for c in permutations(range(4), count))
        assert cost(logits, boxes, alone, mine) == pytest.approx(best)


def test_more_objects_than_cells_leave_some_unclaimed() -> None:
    logits, boxes, batch = random_case(0, [3], cells=2)
    claimed = match(logits, boxes, batch).tolist()
    assert sorted(claimed) == [-1, 0, 1]
    assert detection_loss_sum(logits, boxes, batch).isfinite()


def test_predictions_that_are_no_numbers_do_not_stop_the_matching() -> None:
    logits, boxes, batch = random_case(0, [2], cells=4)
    assert not detection_loss_sum(logits * float("nan"), boxes, batch).isfinite()


def test_a_perfect_prediction_has_hardly_a_loss() -> None:
    logits, boxes, batch = random_case(0, [2, 1], cells=4)
    logits = torch.full_like(logits, -20.0)
    for thing, (scene, cell) in enumerate([(0, 1), (0, 3), (1, 0)]):
        boxes[scene, cell] = batch.boxes[thing]
        logits[scene, cell, batch.labels[thing]] = 20.0
    assert match(logits, boxes, batch).tolist() == [1, 3, 0]
    assert detection_loss_sum(logits, boxes, batch).item() == pytest.approx(0, abs=1e-6)


def test_the_loss_of_a_batch_is_the_sum_of_those_of_its_images() -> None:
    logits, boxes, batch = random_case(1, [2, 0, 3], cells=5)
    total = detection_loss_sum(logits, boxes, batch).item()
    parts = 0.0
    for scene in range(3):
        here = batch.scene == scene
        alone = Batch(
            batch.images[scene : scene + 1],
            batch.boxes[here],
            batch.labels[here],
            batch.scene[here] * 0,
        )
        parts += detection_loss_sum(
            logits[scene : scene + 1], boxes[scene : scene + 1], alone
        ).item()
    assert total == pytest.approx(parts)


def test_focal_loss_is_cross_entropy_of_what_is_unsure() -> None:
    logits, wanted = torch.tensor([0.0, 0.0, 4.0]), torch.tensor([1.0, 0.0, 1.0])
    log2 = torch.tensor(2.0).log().item()
    expected = [0.25 * 0.25 * log2, 0.75 * 0.25 * log2, 0.25 * 0.017986**2 * 0.018150]
    assert focal(logits, wanted).tolist() == pytest.approx(expected, rel=1e-3)


def detector() -> Detector:
    torch.manual_seed(0)
    return Detector(ModelConfig(hidden_dim=8, heads=2, layers=1), n_classes=10)


def scene(n_objects: int) -> Scene:
    boxes = torch.tensor([[0.1, 0.1, 0.4, 0.5]]).repeat(n_objects, 1)
    return Scene(torch.rand(1, SIDE, SIDE), boxes, torch.arange(n_objects))


@pytest.mark.parametrize("scenes", [[scene(2), scene(0)], [scene(0)], []], ids=["2+0", "0", "none"])
def test_every_parameter_takes_part_even_where_there_is_no_object_or_no_image(
    scenes: list[Scene],
) -> None:
    # One that did not would be an error under DDP, in the second step.
    network, batch = detector(), collate(scenes)
    detection_loss_sum(*network(batch), batch).backward()
    assert [name for name, p in network.named_parameters() if p.grad is None] == []
    assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)


def test_detections_are_the_surest_first_and_those_of_their_image() -> None:
    network = detector().eval()
    scenes = [scene(1), scene(2), scene(0)]
    together = detect(network, collate(scenes), most=7)
    assert [table.shape for table in together] == [(7, 6)] * 3
    for one, table in zip(scenes, together, strict=True):
        [alone] = detect(network, collate([one]), most=7)
        torch.testing.assert_close(alone, table)
        assert (table[:-1, 0] >= table[1:, 0]).all()
        assert set(table[:, 1].tolist()) <= set(range(10))
        assert (table[:, 2:4] < table[:, 4:]).all()
    assert detect(network, collate([])) == []


def test_a_width_that_the_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigError, match="hidden_dim 10 is not a multiple of heads 4"):
        parse(ModelConfig, {"hidden_dim": 10})
