"""What is called beside the DDP and differs between ranks is told where nobody has chosen it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import RankEvidence, Seed, StateLoad
from ddpdoctor.evidence.events.beside import Beside
from tests.diagnose.data_simulation import TRAIN, said, world

CALLED, SEEDED, LOADED = (replace(TRAIN, line=line) for line in (70, 71, 72))


def held(
    *,
    parameters: Callable[[int, int], Mapping[str, str]] = lambda rank, step: {},
    buffers: Callable[[int, int], Mapping[str, tuple[float, ...]]] = lambda rank, step: {},
    seeds: Callable[[int], list[Seed]] = lambda rank: [Seed(rank, SEEDED)],
    **facts: Any,
) -> list[RankEvidence]:
    """Ranks that call a module which holds that, in the windows before steps 2, 4 and 8."""
    found = world()
    for rank in found:
        rank.seeds = seeds(rank.rank)
        for step in (2, 4, 8):
            values = buffers(rank.rank, step)
            seen = Beside(
                step=step,
                number=0,
                type="Teacher",
                shapes="4x3 4",
                parameters=parameters(rank.rank, step),
                buffers={name: str(few) for name, few in values.items()},
                few=tuple(values.values()),
                feeds=True,
                place=CALLED,
            )
            rank.of(Beside).append(replace(seen, **facts))
    return found


def own(rank: int, step: int) -> dict[str, str]:
    return {"weight": f"of {rank}", "bias": "zeros"}


def largest(rank: int, step: int) -> dict[str, tuple[float, ...]]:
    return {"largest": (10.0 * step + rank, 20.0 + step)}


def told(ranks: list[RankEvidence]) -> Finding | None:
    return next(iter(said(ranks)), None)


def test_what_each_rank_has_drawn_is_told_by_evidence_with_its_seed() -> None:
    finding = told(held(parameters=own))
    assert finding is not None
    assert (finding.code, finding.certainty, finding.severity) == ("DDP300", "evidence", "warning")
    assert [each.place for each in finding.places] == [CALLED, TRAIN, SEEDED]
    assert "weight of it" in finding.cause


@pytest.mark.parametrize(
    "facts",
    [
        {"parameters": lambda rank, step: {"weight": f"{rank} at {step}"}},  # trained
        {"seeds": lambda rank: [Seed(0, SEEDED), Seed(rank, SEEDED)]},  # chosen of equal ones
        {"seeds": lambda rank: [Seed(rank, SEEDED, wrappers=1)]},  # drawn before
        {"seeds": lambda rank: []},
        {
            "buffers": lambda rank, step: {"data": (1.0 + rank,)},
            "parameters": lambda rank, step: {},
        },
    ],
)
def test_what_may_be_chosen_for_each_rank_is_right(facts: dict[str, Any]) -> None:
    assert told(held(**{"parameters": own, **facts})) is None


def test_what_is_loaded_is_not_drawn_and_another_module_is_not_compared() -> None:
    loaded = held(parameters=own)
    for rank in loaded:
        load = StateLoad(20.0, "module", "Teacher", True, 2, 0, 0, False, LOADED)
        rank.state_loads = [load]
    assert told(loaded) is None
    others = held(parameters=own)
    seen = others[1].of(Beside)
    seen[:] = [replace(each, shapes="4x5 4") for each in seen]
    assert told(others) is None


def test_what_ranks_measure_of_one_kind_is_told_and_a_state_of_each_is_right() -> None:
    finding = told(held(buffers=largest))
    assert finding is not None
    assert (finding.code, finding.certainty) == ("DDP300", "evidence")
    assert told(held(buffers=largest, feeds=False)) is None
    assert told(held(buffers=lambda rank, step: {"state": (0.1 * step - 0.4 * rank, 0.5)})) is None
    assert told(held(buffers=lambda rank, step: {"spread": (step * 3.0**rank,)})) is None
    assert told(held(buffers=lambda rank, step: {"ids": ()})) is None


@pytest.mark.parametrize(("grows", "is_told"), [(64.0, True), (1.0, False), (0.0, False)])
def test_statistics_beside_a_count_that_is_alike_are_each_ranks_own(
    grows: float, is_told: bool
) -> None:
    """Of data that lie about zero, or are of unlike size on each rank. One a step counts steps."""

    def kept(rank: int, step: int) -> dict[str, tuple[float, ...]]:
        return {"mean": (0.1 * step - 0.4 * rank,), "count": (64.0 + grows * step,)}

    finding = told(held(buffers=kept, changed_at=SEEDED, way=(LOADED,)))
    assert (finding is not None) == is_told
    if finding is not None:
        assert finding.cause.count("mean of it") == 1
        assert [each.place for each in finding.places] == [CALLED, TRAIN, SEEDED, LOADED]
