"""The laws of scaling, for any numbers."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.config import TrainingConfig, parse
from ddpdoctor.stack.errors import ConfigError
from ddpdoctor.stack.samplers import TrainingSampler
from ddpdoctor.stack.scaling import Rule, per_rank_batch, scaled_rate

batches = st.integers(1, 100_000)
counts = st.integers(1, 64)
rates = st.floats(1e-8, 10)
rules = st.sampled_from(get_args(Rule))


@given(batches, counts, counts)
def test_what_all_ranks_load_is_the_global_batch_or_it_is_refused(
    global_batch: int, world_size: int, steps: int
) -> None:
    try:
        each = per_rank_batch(global_batch, world_size, steps)
    except ConfigError:
        assert global_batch % (world_size * steps)
    else:
        assert each * world_size * steps == global_batch


@given(counts, counts, st.integers(0, 500))
def test_a_step_of_all_ranks_holds_the_global_batch(
    world_size: int, each: int, length: int
) -> None:
    global_batch = each * world_size
    dealt = [
        list(
            TrainingSampler(
                length,
                per_rank_batch(global_batch, world_size),
                num_replicas=world_size,
                rank=rank,
                drop_last=True,
            )
        )
        for rank in range(world_size)
    ]
    for step in zip(*dealt, strict=True):
        assert sum(map(len, step)) == global_batch


@given(rates, batches, rules)
def test_the_batch_it_was_tuned_with_keeps_the_rate(rate: float, batch: int, rule: Rule) -> None:
    assert scaled_rate(rate, batch, batch, rule) == rate


@given(rates, batches, batches, batches, rules)
def test_scaling_twice_is_scaling_once(
    rate: float, first: int, second: int, third: int, rule: Rule
) -> None:
    twice = scaled_rate(scaled_rate(rate, first, second, rule), second, third, rule)
    assert math.isclose(twice, scaled_rate(rate, first, third, rule), rel_tol=1e-9)


@given(rates, batches, batches)
def test_each_rule_keeps_what_it_promises(rate: float, base: int, batch: int) -> None:
    linear, root, kept = (scaled_rate(rate, base, batch, rule) for rule in get_args(Rule))
    assert math.isclose(linear / batch, rate / base, rel_tol=1e-9)
    assert math.isclose(root**2 / batch, rate**2 / base, rel_tol=1e-9)
    assert kept == rate
    if batch > base:
        assert kept < root < linear


@pytest.mark.parametrize(("global_batch", "world_size"), [(0, 1), (-4, 2), (4, 0), (10, 4)])
def test_a_batch_that_cannot_be_dealt_is_refused(global_batch: int, world_size: int) -> None:
    with pytest.raises(ConfigError, match="choose a multiple"):
        per_rank_batch(global_batch, world_size)


@given(batches, counts, counts, rates, rules)
def test_a_plan_holds_the_global_batch_and_the_rate_that_the_rule_gives(
    global_batch: int, world_size: int, steps: int, rate: float, rule: Rule
) -> None:
    options = {"accumulation_steps": steps, "learning_rate": rate, "learning_rate_rule": rule}
    config = TrainingConfig(global_batch=global_batch, base_batch=64, **options)
    try:
        plan = config.plan(world_size)
    except ConfigError:
        assert global_batch % (world_size * steps)
    else:
        assert plan.batch_size * world_size * steps == plan.global_batch == global_batch
        assert plan.learning_rate == scaled_rate(rate, 64, global_batch, rule)


def test_a_plan_without_a_rule_keeps_the_rate_and_multiplies_the_batch() -> None:
    plan = TrainingConfig(batch_size=16, accumulation_steps=2).plan(4)
    assert (plan.batch_size, plan.global_batch, plan.learning_rate) == (16, 128, 2e-3)


def test_a_rule_without_its_base_is_refused() -> None:
    with pytest.raises(ConfigError, match="learning_rate_rule=linear needs base_batch"):
        parse(TrainingConfig, {"learning_rate_rule": "linear"})
