"""Mean average precision: known values, a slow oracle, and what it may not depend on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ddpdoctor.stack.detection.average_precision import mean_average_precision
from ddpdoctor.stack.detection.boxes import overlaps

Truth = tuple[torch.Tensor, torch.Tensor]
HERE, THERE = [0.1, 0.1, 0.4, 0.4], [0.6, 0.6, 0.9, 0.9]


def table(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, 6)


def truth(*boxes: list[float], labels: list[int] | None = None) -> Truth:
    return (
        torch.tensor(boxes, dtype=torch.float64).reshape(-1, 4),
        torch.tensor(labels or [0] * len(boxes), dtype=torch.int64),
    )


def test_known_cases() -> None:
    both = [truth(HERE, THERE)]
    right = [0.9, 0, *HERE], [0.8, 0, *THERE]
    assert mean_average_precision([table(*right)], both) == 1.0
    assert mean_average_precision([table()], both) == 0.0
    assert mean_average_precision([], []) == 0.0
    assert mean_average_precision([table(right[0])], [truth()]) == 0.0
    # Half of the objects: precision 1 up to recall 0.5, at 51 of 101 recalls.
    assert mean_average_precision([table(right[0])], both) == pytest.approx(51 / 101)
    # A second detection of the same object is wrong, and stands before the right one.
    doubled = table(right[0], [0.85, 0, *HERE], right[1])
    expected = (51 + 50 * 2 / 3) / 101
    assert mean_average_precision([doubled], both) == pytest.approx(expected)
    # The right place, the wrong class.
    assert mean_average_precision([table([0.9, 1, *HERE])], [truth(HERE)]) == 0.0
    # IoU 0.75: right at the thresholds 0.5, 0.55, ... 0.75 alone.
    narrow = table([0.9, 0, 0.1, 0.1, 0.325, 0.4])
    assert mean_average_precision([narrow], [truth(HERE)], [0.5, 0.7, 0.8]) == pytest.approx(2 / 3)


def oracle(detections: list[torch.Tensor], truths: list[Truth], threshold: float) -> float:
    """The definition, word by word and slowly."""
    classes = {int(label) for _, labels in truths for label in labels}
    values = []
    for label in classes:
        rows = sorted(
            (
                (-row[0].item(), image, number)
                for image, rows in enumerate(detections)
                for number, row in enumerate(rows)
                if row[1] == label
            ),
        )
        total = sum(int((labels == label).sum()) for _, labels in truths)
        taken: set[tuple[int, int]] = set()
        right: list[bool] = []
        for _, image, number in rows:
            boxes, labels = truths[image]
            best, best_iou = None, threshold
            for thing in range(len(labels)):
                if labels[thing] != label or (image, thing) in taken:
                    continue
                iou = overlaps(detections[image][number, 2:], boxes[thing])[0].item()
                if iou >= best_iou and (best is None or iou > best_iou):
                    best, best_iou = thing, iou
            right.append(best is not None)
            if best is not None:
                taken.add((image, best))
        area = 0.0
        for recall in np.linspace(0, 1, 101):
            precisions = [
                sum(right[:n]) / n
                for n in range(1, len(right) + 1)
                if sum(right[:n]) / total >= recall
            ]
            area += max(precisions, default=0.0) / 101
        values.append(area)
    return sum(values) / len(values) if values else 0.0


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[torch.Tensor], list[Truth]]:
    """A few images; boxes on a coarse grid, so that some meet; few scores, so that some tie."""

    def a_box() -> list[float]:
        x, y = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        return [x / 8, y / 8, (x + draw(st.integers(2, 4))) / 8, (y + 3) / 8]

    detections, truths = [], []
    for _ in range(draw(st.integers(1, 3))):
        objects = [(a_box(), draw(st.integers(0, 1))) for _ in range(draw(st.integers(0, 3)))]
        truths.append(truth(*(b for b, _ in objects), labels=[label for _, label in objects]))
        detections.append(
            table(
                *(
                    [draw(st.sampled_from([0.2, 0.5, 0.9])), draw(st.integers(0, 1)), *a_box()]
                    for _ in range(draw(st.integers(0, 5)))
                )
            )
        )
    return detections, truths


@settings(max_examples=200)
@given(cases(), st.sampled_from([0.3, 0.5, 0.75]))
def test_it_is_what_the_definition_gives(
    case: tuple[list[torch.Tensor], list[Truth]], threshold: float
) -> None:
    detections, truths = case
    found = mean_average_precision(detections, truths, [threshold])
    assert found == pytest.approx(oracle(detections, truths, threshold))
