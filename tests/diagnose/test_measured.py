"""What ranks were given, and what they measured after a restore: unlike is told, alike is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from ddpdoctor.catalog import Finding
from ddpdoctor.evidence import Collective, Epoch, RankEvidence, StateLoad
from ddpdoctor.evidence.events.given import Given
from ddpdoctor.evidence.events.shuffled import Shuffled
from tests.diagnose.data_simulation import (
    TRAIN,
    WORLD,
    epoch,
    lines,
    loader,
    said,
    sampler,
    world,
)

FED, SHUFFLED, LOADED, MEASURED = (replace(TRAIN, line=line) for line in (60, 61, 62, 63))
BATCH, EPOCH = 8, 12
"""Samples of a pass, and passes of an epoch."""


def only(ranks: list[RankEvidence]) -> Finding:
    (finding,) = said(ranks)
    return finding


def fed(sample: Callable[[int, int], int], *, epochs: int = 2, told: bool) -> list[RankEvidence]:
    """Ranks whose n-th sample is that; with a reduction at the end of each epoch, or without."""
    found = world()
    for rank in found:
        for number in range(EPOCH * epochs):
            rows = range(BATCH * number, BATCH * (number + 1))
            names = tuple(str(sample(rank.rank, row)) for row in rows)
            rank.of(Given).append(Given(0, number, 10.0 + number, names, FED))
        if told:
            ends = (9.5 + EPOCH * (epoch + 1) for epoch in range(epochs))
            rank.collectives = [
                Collective("0", n, "all_reduce", t, FED) for n, t in enumerate(ends)
            ]
    return found


def other_shards(rank: int, n: int) -> int:
    """Right shards, which ranks exchange from epoch to epoch: none sees a sample again for long."""
    size = BATCH * EPOCH
    return (rank + n // size) % WORLD * size + n % size


def own_order(rank: int, n: int) -> int:
    """Every rank begins elsewhere in one order of all samples, half a shard apart."""
    return (rank * BATCH * EPOCH // 2 + n) % (WORLD * BATCH * EPOCH)


def filled_up(rank: int, n: int) -> int:
    """Right shards, too short by a pass: the last is filled up with the first of another rank."""
    number, size = n // BATCH % EPOCH, BATCH * EPOCH
    return (rank + 1) % WORLD * size + n % BATCH if number == EPOCH - 1 else rank * size + n % size


def test_samples_that_several_ranks_are_given_in_an_epoch_are_told() -> None:
    found = fed(own_order, told=True)
    assert (only(found).code, lines(only(found))) == ("DDP202", [60])
    for rank in found:
        state = f"of {rank.rank}"
        rank.of(Shuffled).append(Shuffled("random.shuffle", 48, state, SHUFFLED))
    assert (only(found).code, lines(only(found))) == ("DDP217", [61, 60])
    for rank in found:
        rank.loaders = [loader(deals={"base": (7 + rank.rank, LOADED)}, by_rank=True)]
    assert (only(found).code, lines(only(found))[0]) == ("DDP204", LOADED.line)


def test_a_stream_that_several_ranks_read_is_told_at_what_gives_its_samples() -> None:
    found = fed(own_order, told=True)
    for rank in found:
        rank.loaders = [loader(iterable=True, workers=2, by_rank=True, made_at=SHUFFLED)]
    told = only(found)
    assert (told.code, lines(told)[0]) == ("DDP215", SHUFFLED.line)
    assert "rank * workers + id" in told.cure.text


@pytest.mark.parametrize("sampled", [True, False])
def test_what_a_distributed_sampler_deals_out_may_be_alike_but_not_of_another_order(
    sampled: bool,
) -> None:
    found = fed(own_order, told=True)
    for rank in found:
        dealt = sampler(rank.rank) if sampled else None
        rank.loaders = [loader(epoch(order=rank.rank), sampler=dealt, by_rank=True)]
    assert [each.code for each in said(found)] == ["DDP202"] * (not sampled)
    for rank in found:
        rank.of(Shuffled).append(Shuffled("random.shuffle", 48, f"of {rank.rank}", SHUFFLED))
    assert only(found).code == "DDP217"


def test_what_several_have_in_common_is_asked_of_each_two() -> None:
    """Ranks 0 and 1 share; of what many ranks draw and put back, much is in common to some."""
    told = only(fed(lambda rank, n: own_order(min(rank, 1), n) + rank // 2 * 1000, told=True))
    assert (told.code, told.ranks) == ("DDP202", (0, 1))
    drawn = [random.Random(rank).choices(range(EPOCH * BATCH * 4), k=200) for rank in range(WORLD)]
    found = fed(lambda rank, n: drawn[rank][n], told=False)
    for rank in found:
        whole = Epoch(9.0, FED, batches=EPOCH, steps=EPOCH, ended=10.0 + EPOCH)
        rank.loaders = [loader(iterable=True, by_rank=True, sampler=None, epochs={1: whole})]
    assert said(found) == []


@pytest.mark.parametrize(("alike", "codes"), [(True, ["DDP202", "DDP421"]), (False, [])])
def test_ranks_that_do_the_same_work_are_told(alike: bool, codes: list[str]) -> None:
    """With what each measured of one batch for all: the same, or what its part of it gives."""
    found = fed(lambda rank, n: n, epochs=4, told=True)
    for rank in found:
        rank.of(Shuffled).append(Shuffled("torch.randperm", 48, "one", SHUFFLED))
        rank.collectives = [
            replace(call, reduce_op="SUM", content=f"{call.seq}" + f"-{rank.rank}" * (not alike))
            for call in rank.collectives
        ]
    assert sorted(each.code for each in said(found)) == codes
    if alike:
        (same,) = (each for each in said(found) if each.code == "DDP202")
        assert lines(same) == [SHUFFLED.line, FED.line]


@pytest.mark.parametrize(("counted", "severity"), [(False, "warning"), (True, "info")])
def test_a_sum_of_equal_values_beside_their_count_is_a_note(counted: bool, severity: str) -> None:
    found = fed(other_shards, epochs=4, told=True)
    for rank in found:
        rank.collectives = [
            replace(call, reduce_op="SUM", content=f"{call.seq}", counted=counted)
            for call in rank.collectives
        ]
    assert [(each.code, each.severity) for each in said(found)] == [("DDP421", severity)]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    "sample",
    [
        other_shards,
        filled_up,
        lambda rank, n: n,  # one batch for all: each may take its part of it
        lambda rank, n: rank * 1000 + n // 2,  # drawn with putting back, or augmented
        lambda rank, n: (rank * BATCH * EPOCH + n) % (WORLD * BATCH * EPOCH - 3),  # padded
    ],
)
def test_samples_of_a_rank_alone_or_of_all_at_once_are_right(
    sample: Callable[[int, int], int], told: bool
) -> None:
    assert said(fed(sample, told=told)) == []


def test_a_pass_over_a_loader_is_an_epoch_however_often_ranks_communicate_in_it() -> None:
    found = fed(own_order, epochs=1, told=False)
    for rank in found:
        rank.collectives = [
            Collective("0", n, "all_reduce", 10.5 + 4 * n, MEASURED) for n in range(3)
        ]
    assert said(found) == []
    for rank in found:
        whole = Epoch(9.0, FED, batches=EPOCH, steps=EPOCH, ended=10.0 + EPOCH)
        rank.loaders = [loader(iterable=True, by_rank=True, sampler=None, epochs={1: whole})]
    assert only(found).code == "DDP202"
    for rank in found:  # a few samples are alike; or many, as they are drawn and put back
        given = rank.of(Given)
        given[3] = replace(given[3], rows=(*given[3].rows[:-2], *given[2].rows[:2]))
    assert "2 twice" in only(found).cause
    for rank in found:
        given = rank.of(Given)
        for number in range(4, 9):
            given[number] = replace(given[number], rows=given[number - 3].rows)
    assert said(found) == []


def test_ranks_that_train_parts_of_a_model_may_share_samples() -> None:
    found = fed(own_order, told=True)
    for rank in found:
        rank.wrappers = [replace(rank.wrappers[0], ranks=(rank.rank, (rank.rank + 1) % WORLD))]
    assert said(found) == []


def restored(
    contents: dict[int, str], *, step: int = 80, after: str = "all_reduce", left: bool = True
) -> Finding | None:
    """Ranks that measure, load into their model what they have, and measure again."""
    found = world()
    for rank in found:
        rank.steps, rank.leaving = 80, 40.0 if left or rank.rank else None
        begun = [(10.0, "all_reduce"), (30.0, after)]
        rank.collectives = [
            Collective("0", n, op, time, MEASURED) for n, (time, op) in enumerate(begun)
        ]
        if rank.rank in contents:
            load = StateLoad(20.0, "module", "Net", True, 2, 0, 0, False, LOADED)
            load = replace(load, wrapper=0, changed=True, step=step, content=contents[rank.rank])
            rank.state_loads = [load]
    return next(iter(said(found)), None)


@pytest.mark.parametrize("contents", [{0: "best"}, {n: f"best of {n}" for n in range(WORLD)}])
def test_a_model_that_was_restored_unlike_and_then_measured_by_all_is_told(
    contents: dict[int, str],
) -> None:
    finding = restored(contents)
    assert finding is not None
    assert (finding.code, lines(finding)) == ("DDP513", [62, 63])
    assert finding.ranks == tuple(contents)


def test_a_restore_that_all_share_or_that_is_not_measured_by_all_is_right() -> None:
    assert restored(dict.fromkeys(range(WORLD), "best")) is None
    assert restored({0: "best"}, after="broadcast") is None
    assert restored({0: "best"}, after="barrier") is None
    assert restored({0: "best"}, step=40) is None
    assert restored({0: "best"}, left=False) is None  # it may have stepped since
