"""Gradients put together by hand: by what their sum was multiplied, and if that is fair."""

from __future__ import annotations

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import Evidence, Fate, Group, Place, RankEvidence
from ddpdoctor.evidence.events.by_hand import ByHand

STEP = Place("/home/user/train.py", 20, "main")
OWN = ([1.0, -2.0, 3.0, 0.5], [0.25, 1.0, 2.0, -3.0], [1.5, -0.5, 1.0, 4.0])


def found(
    by: float, *, world: int = 3, passes: int = 1, factor: float = 1.0, rule: str = "SGD"
) -> list[Finding]:
    """What is said of ranks that stepped twice on the sum of their gradients, times a number."""
    ranks = []
    for number in range(world):
        rank = RankEvidence(number, world, 100 + number, left=60.0)
        rank.groups = {"0": Group("0", tuple(range(world)), "gloo", 1800.0, STEP)}
        rank.fate = Fate(number, rank.pid, 0, None, 61.0)
        for step in (2, 4):
            own = [[value * step for value in of] for of in OWN[:world]]
            total = [sum(of) * by for of in zip(*own, strict=True)]
            rank.of(ByHand).append(
                ByHand(
                    0,
                    step,
                    {"w": f"{step}"},
                    {"w": f"{step}"},
                    STEP,
                    left={"w": own[number]},
                    few={"w": total},
                    factors=(factor,),
                    passes=passes,
                    rule=rule,
                )
            )
        ranks.append(rank)
    return diagnose(Evidence(world, ranks))


@pytest.mark.parametrize(
    ("by", "told"),
    [
        (1.0, "which nothing has divided by 3"),
        (1 / 9, "divided by 3 twice"),
        (1 / 4, "divided by 4, "),
        (2.0, "times 2, "),
    ],
)
def test_another_number_than_one_over_the_ranks_is_told(by: float, told: str) -> None:
    (finding,) = found(by)
    assert (finding.code, finding.severity, finding.certainty) == ("DDP211", "warning", "evidence")
    assert told in finding.cause


@pytest.mark.parametrize(
    ("by", "passes", "factor"),
    [
        (1 / 3, 1, 1.0),
        (1 / 3, 4, 1.0),
        (1 / 3, 4, 1 / 4),
        (1 / 12, 4, 1.0),
        (1.0, 1, 1 / 3),
        (1.0, 4, 1 / 12),
        (1.0, 1, 0.7),
        (1.0, 3, 1 / 3),
    ],
)
def test_what_makes_an_average_in_the_end_is_not(by: float, passes: int, factor: float) -> None:
    """The last may divide by its micro-batches or by the ranks, which are as many."""
    assert found(by, passes=passes, factor=factor) == []


def test_an_optimizer_that_divides_by_the_gradient_makes_it_a_note() -> None:
    (finding,) = found(1.0, rule="AdamW")
    assert finding.severity == "info"
    assert finding.evidence[-1].startswith("AdamW divides by the size of the gradient")
