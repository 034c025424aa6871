"""A mean that is scaled by as much as there are ranks: noted where gradients are averaged too."""

from __future__ import annotations

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import (
    Collective,
    Evidence,
    Fate,
    Group,
    Place,
    RankEvidence,
    Training,
    Wrapper,
)
from ddpdoctor.evidence.events.losses import Loss

BACK = Place("/home/user/train.py", 20, "main")
SUM = Place("/home/user/train.py", 18, "main")
WORLD = 4


def found(
    *factors: float, whole: float = 1.0, window: str = "s", kept_out: str = "", by: str = ""
) -> list[Finding]:
    ranks = []
    for number in range(WORLD):
        rank = RankEvidence(number, WORLD, 100 + number, left=60.0)
        rank.groups = {"0": Group("0", tuple(range(WORLD)), "gloo", 1800.0, BACK)}
        rank.fate = Fate(number, rank.pid, 0, None, 61.0)
        rank.wrappers = [Wrapper(BACK, ("w",), False, False)]
        rank.training = {(0, 0): Training(0, 0, 3, {window: 3}, 3, kept_out=kept_out)}
        rank.of(Loss).extend(
            Loss(step, 1.0 / step + number, BACK, factors, whole, time=10.0 * step)
            for step in range(1, 5)
        )
        rank.collectives += [
            Collective("0", step, by, 10.0 * step - 1, SUM, ((1,),), "float32", graph=True)
            for step in range(1, 5 if by else 1)
        ]
        ranks.append(rank)
    return diagnose(Evidence(WORLD, ranks))


@pytest.mark.parametrize(("factor", "told"), [(1 / 4, "divided by 4"), (4.0, "multiplied by 4")])
def test_a_mean_that_is_scaled_by_the_ranks_is_a_suspicion(factor: float, told: str) -> None:
    (finding,) = found(factor)
    assert (finding.code, finding.severity, finding.is_suspicion) == ("DDP211", "info", True)
    assert told in finding.cause


def test_other_weights_micro_batches_and_hooks_of_the_users_own_are_none() -> None:
    assert found(1.0) == found(1 / 2) == []
    assert found(1 / 4, window="nnns") == []
    assert found(1 / 4, kept_out="comm hook") == []


def test_a_loss_of_other_terms_than_means_is_one_where_all_of_it_is_divided() -> None:
    (finding,) = found(whole=1 / 4)
    assert (finding.code, finding.is_suspicion) == ("DDP211", True)
    assert "the loss of each of ranks 0-3 is divided by 4" in finding.cause
    assert found(whole=4.0) == found(whole=1.0) == found(whole=1 / 4, window="nnns") == []


@pytest.mark.parametrize(("op", "places"), [("all_reduce", 2), ("reduce", 2), ("broadcast", 1)])
def test_the_line_that_sums_the_loss_with_its_graph_is_told(op: str, places: int) -> None:
    (finding,) = found(1 / 4, by=op)
    assert [each.place for each in finding.places] == [BACK, SUM][:places]
