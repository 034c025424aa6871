"""Why ranks have unlike numbers of batches: what they have shown of it, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ddpdoctor.diagnose import uneven
from ddpdoctor.evidence import Seed
from tests.diagnose.data_simulation import LOOP, WORLD, epoch, loader, world

SHUFFLE, SEED, DEAL = (replace(LOOP, line=line) for line in (51, 52, 53))


def told(
    batches: tuple[int, ...] = (5, 4, 4, 4), seeds: bool = False, **facts: tuple[Any, ...]
) -> str:
    """What is said of ranks whose loaders had these facts, one for each rank."""
    reason = found(batches, seeds, **facts)
    return reason.told if reason is not None else ""


def found(
    batches: tuple[int, ...] = (5, 4, 4, 4), seeds: bool = False, **facts: tuple[Any, ...]
) -> uneven.Reason | None:
    states = facts.pop("mixed", ((),) * WORLD)
    loaders = [
        loader(
            epoch(mixed=states[rank], mixed_at=SHUFFLE if states[rank] else None),
            **{name: of[rank] for name, of in facts.items()},
        )
        for rank in range(WORLD)
    ]
    ranks = world([[each] for each in loaders])
    for rank in ranks if seeds else []:
        rank.seeds.append(Seed(rank.rank, SEED))
    return uneven.reason(ranks, dict(enumerate(loaders)), dict(enumerate(batches)))


def test_shares_that_differ_by_less_than_the_ranks_are_dealt_out_with_a_remainder() -> None:
    assert told(length=(13, 13, 13, 15)).startswith("54 samples are dealt out with a remainder")
    assert told(length=(13, 13, 13, 19)).startswith("They hold shares of unlike size: rank 0 has")
    assert told(length=(13, 13, 13, 15), iterable=(True,) * WORLD) == ""


def test_shares_that_overlap_are_chosen_by_each_where_it_was_seeded_apart() -> None:
    members = ((0, 1), (1, 2, 3), (0, 3), (2, 3, 4))
    reason = found(length=(2, 3, 2, 3), members=members, seeds=True)
    assert reason is not None
    assert reason.told.startswith("Each has chosen samples of its own from one set")
    assert [each.place for each in reason.places] == [SEED]


def test_orders_of_each_are_told_with_the_line_that_shuffles() -> None:
    reason = found(mixed=(("a",), ("b",), ("c",), ("d",)))
    assert reason is not None
    assert "no seed was shared" in reason.told
    assert [each.place for each in reason.places] == [SHUFFLE]


def test_parts_of_one_order_have_a_remainder_or_each_leaves_something_out_of_its_own() -> None:
    deals = tuple({"rank": (rank, DEAL)} for rank in range(WORLD))
    one = (("a",),) * WORLD
    said = told(mixed=one, deals=deals)
    assert "with a remainder or for what each leaves out of its own, are not as long" in said
    assert told((9, 4, 4, 4), mixed=one, deals=deals) == ""
    assert told(mixed=one) == ""


def test_what_torch_shuffles_within_each_share_is_no_reason() -> None:
    assert told(mixed=(("a",), ("b",), ("c",), ("d",)), plain=(True,) * WORLD) == ""
