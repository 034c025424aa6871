"""The average follows its recurrence, on every rank alike."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch import nn

from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.process_group import session, wrap


def set_weights(model: nn.Module, value: float) -> None:
    for parameter in model.parameters():
        nn.init.constant_(parameter, value)


def weight(average: ExponentialMovingAverage) -> float:
    return next(average.module.parameters()).flatten()[0].item()


def test_the_average_is_the_recurrence_written_out() -> None:
    model = nn.Linear(1, 1).double()
    set_weights(model, 0.0)
    average = ExponentialMovingAverage(model, decay=0.15)
    set_weights(model, 1.0)
    expected = 0.0
    for decay in (1 / 10, 0.15, 0.15):  # 2 / 11 is above 0.15 already
        average.update(model)
        expected = decay * expected + (1 - decay) * 1.0
        assert weight(average) == pytest.approx(expected, rel=1e-12)


def test_a_decay_that_is_set_later_is_used() -> None:
    model = nn.Linear(1, 1).double()
    average = ExponentialMovingAverage(model, decay=0.9)
    average.decay = 0.0
    set_weights(model, 7.0)
    average.update(model)
    assert weight(average) == 7.0


def test_buffers_are_copied_and_the_model_is_left_alone() -> None:
    model = nn.BatchNorm1d(2)
    average = ExponentialMovingAverage(model, decay=0.9)
    model(torch.randn(8, 2))
    average.update(model)
    assert torch.equal(average.module.running_mean, model.running_mean)
    assert average.module.num_batches_tracked == 1
    assert not average.module.training
    assert model.training
    assert not any(p.requires_grad for p in average.module.parameters())


def test_a_saved_average_goes_on_as_if_it_had_not_been() -> None:
    model = nn.Linear(3, 3)
    average = ExponentialMovingAverage(model, decay=0.8)
    for value in (1.0, 2.0, 3.0):
        set_weights(model, value)
        average.update(model)
    restored = ExponentialMovingAverage(nn.Linear(3, 3), decay=0.5)
    restored.load_state_dict(average.state_dict())
    for each in (average, restored):
        set_weights(model, 4.0)
        each.update(model)
    assert weight(average) == weight(restored)
    assert (restored.decay, restored.updates) == (0.8, 4)


@pytest.mark.distributed(nproc=2)
def test_built_after_the_wrap_it_is_equal_on_all_ranks() -> None:
    with session() as world:
        torch.manual_seed(world.rank)
        model = nn.Linear(3, 3)
        net = wrap(model, world)
        average = ExponentialMovingAverage(net, decay=0.9)
        average.update(net)
        sums: list[float] = [0.0, 0.0]
        dist.all_gather_object(sums, weight(average))
        del net
    assert sums[0] == sums[1]
