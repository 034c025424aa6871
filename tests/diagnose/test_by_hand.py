"""Ranks that share gradients without a DDP: what is proven of them, and what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ddpdoctor.catalog import Finding
from ddpdoctor.diagnose import diagnose
from ddpdoctor.evidence import Evidence, Fate, Group, Place, RankEvidence
from ddpdoctor.evidence.events.by_hand import ByHand

STEP = Place("/home/user/train.py", 20, "main")
Digests = Mapping[str, str]


def found(*looks: Sequence[tuple[Digests, Digests]]) -> list[Finding]:
    """What is said of ranks that held these (weights, gradients) at each step, by rank."""
    ranks = []
    for number, of in enumerate(zip(*looks, strict=True)):
        rank = RankEvidence(number, len(looks[0]), 100 + number, left=60.0)
        rank.groups = {"0": Group("0", (0, 1), "gloo", 1800.0, STEP)}
        rank.fate = Fate(number, rank.pid, 0, None, 61.0)
        for step, (weights, gradients) in enumerate(of, 1):
            rank.of(ByHand).append(ByHand(0, step, weights, gradients, STEP))
        ranks.append(rank)
    return diagnose(Evidence(len(ranks), ranks))


def crossed(*gradients: str) -> list[Finding]:
    """Ranks of which one has used an expert and the other another one, by the gradient of both."""
    return found(
        *(
            [
                ({"a.weight": f"a{n}"}, {"a.weight": each}),
                ({"b.weight": f"b{n}"}, {"b.weight": each}),
            ]
            for n, each in enumerate(gradients)
        )
    )


def test_gradients_of_two_parameters_that_change_alike_were_added_up() -> None:
    (finding,) = crossed("x", "y", "z")
    assert (finding.code, finding.certainty) == ("DDP300", "proven")
    assert "a.weight on rank 0 and that of b.weight on rank 1" in finding.cause


def test_gradients_that_are_zero_alike_were_not() -> None:
    assert crossed("zero", "zero", "zero", "x") == []


def ordered(*orders: str, named: bool = True) -> list[Finding]:
    """Ranks that put one another's reduced gradients on a, b and c in these orders."""
    looks = []
    for step in range(3):
        weights = {name: f"{name}{step}" for name in "abc"}
        look = []
        for rank, order in enumerate(orders):
            gradients = {
                name: f"{step} of {which}" for name, which in zip("abc", order, strict=True)
            }
            mine = {name: f"{which}{step}" for name, which in zip("abc", order, strict=True)}
            apart = {name: f"{digest} on {rank}" for name, digest in weights.items()}
            by_step = apart if step else weights
            look.append((by_step if named else mine, gradients))
        looks.append(look)
    return found(*looks)


def test_the_same_gradients_on_other_parameters_were_put_together_in_another_order() -> None:
    finding, *_ = ordered("abc", "bac")
    assert (finding.code, finding.certainty, finding.severity) == ("DDP413", "proven", "error")
    assert "that of a on rank 0 is that of b on rank 1" in finding.cause


def test_parameters_that_are_only_named_in_another_order_are_well() -> None:
    assert "DDP413" not in {each.code for each in ordered("abc", "bac", named=False)}


def test_gradients_of_which_each_rank_has_others_are_no_order() -> None:
    assert "DDP413" not in {each.code for each in ordered("abc", "bax")}


def test_other_weights_under_the_same_gradients_are_told_as_they_were_seen() -> None:
    (finding,) = found(
        *(
            [({"w": f"mine {n}"}, {"w": each}), ({"w": f"theirs {n}"}, {"w": each})]
            for n, each in enumerate("xyz")
        )
    )
    assert (finding.code, finding.certainty) == ("DDP300", "proven")
    assert "at each step that was looked at" in finding.cause


def test_equal_weights_under_the_same_gradients_are_well() -> None:
    assert found(*([({"w": f"w{n}"}, {"w": g})] * 2 for n, g in enumerate("xyz"))) == []


def test_copies_that_were_alike_and_have_never_talked_are_noted() -> None:
    """Weights that differ from the first, or the same gradients, are another matter."""
    looks = [({"w": f"a{n}" if n else "w"}, {"w": f"g{n}"}) for n in range(3)]
    others = [({"w": f"b{n}" if n else "w"}, {"w": f"h{n}"}) for n in range(3)]
    (finding,) = found(*zip(looks, others, strict=True))
    assert (finding.code, finding.title) == ("DDP300", "nothing-exchanged")
    assert (finding.severity, finding.is_suspicion) == ("info", True)
    apart = [({"w": f"c{n}"}, {"w": f"h{n}"}) for n in range(3)]
    assert found(*zip(looks, apart, strict=True)) == []
