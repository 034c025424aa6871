"""The laws of sharding, for any numbers."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.samplers import TrainingSampler, dealt_by_cost, exact_shard

lengths = st.integers(0, 200)
world_sizes = st.integers(1, 9)
batch_sizes = st.integers(1, 12)


def samplers(
    length: int, batch_size: int, world_size: int, **options: bool
) -> list[TrainingSampler]:
    return [
        TrainingSampler(length, batch_size, num_replicas=world_size, rank=rank, seed=3, **options)
        for rank in range(world_size)
    ]


@given(lengths, world_sizes)
def test_exact_shards_hold_every_sample_once(length: int, world_size: int) -> None:
    shards = [exact_shard(length, rank, world_size) for rank in range(world_size)]
    assert sorted(chain.from_iterable(shards)) == list(range(length))
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


@given(lengths, batch_sizes, world_sizes, st.integers(0, 5))
def test_an_epoch_holds_every_sample_once_in_equally_many_batches(
    length: int, batch_size: int, world_size: int, epoch: int
) -> None:
    dealt = []
    for sampler in samplers(length, batch_size, world_size):
        sampler.set_epoch(epoch)
        dealt.append(list(sampler))
        assert len(sampler) == len(dealt[-1])
    assert sorted(chain.from_iterable(chain.from_iterable(dealt))) == list(range(length))
    assert len({len(batches) for batches in dealt}) == 1
    for step in zip(*dealt, strict=True):
        sizes = [len(batch) for batch in step]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= batch_size


@given(lengths, batch_sizes, world_sizes)
def test_dropping_the_last_slice_leaves_only_full_batches(
    length: int, batch_size: int, world_size: int
) -> None:
    for sampler in samplers(length, batch_size, world_size, drop_last=True):
        batches = list(sampler)
        assert len(batches) == len(sampler) == length // (batch_size * world_size)
        assert all(len(batch) == batch_size for batch in batches)


@given(lengths, batch_sizes, world_sizes)
def test_many_ranks_step_through_the_same_slices_as_one(
    length: int, batch_size: int, world_size: int
) -> None:
    [lone] = samplers(length, batch_size * world_size, 1)
    together = zip(*samplers(length, batch_size, world_size), strict=True)
    assert [sorted(chain(*step)) for step in together] == [sorted(batch) for batch in lone]


@given(lengths, batch_sizes, world_sizes, st.data())
def test_a_later_start_gives_the_rest_of_the_epoch(
    length: int, batch_size: int, world_size: int, data: st.DataObject
) -> None:
    whole = samplers(length, batch_size, world_size)
    steps = data.draw(st.integers(0, len(whole[0])))
    for sampler in whole:
        sampler.set_epoch(2)
        rest = list(sampler)[steps:]
        sampler.set_epoch(2, start=min(steps * batch_size * world_size, length))
        assert list(sampler) == rest


@given(lengths, batch_sizes, world_sizes, st.integers(0, 2**31))
def test_shards_partition_the_set_whatever_the_shared_seed(
    length: int, batch_size: int, world_size: int, seed: int
) -> None:
    dealt = [
        list(TrainingSampler(length, batch_size, num_replicas=world_size, rank=rank, seed=seed))
        for rank in range(world_size)
    ]
    assert sorted(chain.from_iterable(chain.from_iterable(dealt))) == list(range(length))


@given(st.integers(200, 400), st.integers(2, 9), st.integers(0, 2**31))
def test_a_seed_of_each_rank_leaves_samples_out(length: int, world_size: int, seed: int) -> None:
    dealt = [
        list(TrainingSampler(length, 8, num_replicas=world_size, rank=rank, seed=seed + rank))
        for rank in range(world_size)
    ]
    assert len(set(chain.from_iterable(chain.from_iterable(dealt)))) < length


@given(batch_sizes, world_sizes, st.lists(st.integers(0, 1000), max_size=200))
def test_shares_by_cost_are_those_of_the_same_slices_with_as_many_samples_each(
    batch_size: int, world_size: int, costs: list[int]
) -> None:
    plain = samplers(len(costs), batch_size, world_size)
    by_cost = samplers(len(costs), batch_size, world_size)
    for sampler in by_cost:
        sampler.costs = costs
    steps = zip(zip(*plain, strict=True), zip(*by_cost, strict=True), strict=True)
    for step, shared in steps:
        assert sorted(chain(*step)) == sorted(chain(*shared))
        assert list(map(len, step)) == list(map(len, shared))


@given(world_sizes, st.integers(1, 8), st.data())
def test_shares_by_cost_differ_by_no_more_than_the_dearest_sample(
    world_size: int, each: int, data: st.DataObject
) -> None:
    count = world_size * each
    costs = data.draw(st.lists(st.integers(1, 1000), min_size=count, max_size=count))
    loads = [sum(map(costs.__getitem__, s)) for s in dealt_by_cost(range(count), costs, world_size)]
    assert max(loads) - min(loads) <= max(costs)


def test_another_epoch_is_another_order() -> None:
    [sampler] = samplers(50, 50, 1)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders += list(sampler)
    assert orders[0] != orders[1]
    assert orders[0] == orders[2]


def test_an_order_without_shuffling_is_that_of_the_data() -> None:
    [sampler] = samplers(5, 2, 1, shuffle=False)
    assert list(sampler) == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(("batch_size", "rank"), [(0, 0), (1, 2), (1, -1)])
def test_numbers_that_make_no_sense_are_refused(batch_size: int, rank: int) -> None:
    with pytest.raises(ValueError, match="make no sense"):
        TrainingSampler(5, batch_size, num_replicas=2, rank=rank)
