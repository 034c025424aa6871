"""The laws of accumulation windows, for any numbers of ranks, micro-batches and samples."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.loss import global_mean
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.trainer import windows

sizes = st.integers(1, 9)
ranks = st.integers(1, 5)


@st.composite
def epochs(draw: st.DrawFn) -> list[list[int]]:
    """How many samples each rank has in each micro-batch of an epoch; some have none."""
    world_size = draw(ranks)
    shares = st.lists(st.integers(0, 4), min_size=world_size, max_size=world_size)
    # A micro-batch in which no rank has a sample is no micro-batch.
    return draw(st.lists(shares.filter(any), max_size=12))


@given(st.lists(st.integers()), sizes)
def test_windows_hold_every_micro_batch_once_in_its_order(batches: list[int], size: int) -> None:
    cut = list(windows(batches, size))
    assert [each for window in cut for each in window] == batches
    assert all(len(window) == size for window in cut[:-1])
    assert all(1 <= len(window) <= size for window in cut)


@given(st.lists(st.integers()), sizes)
def test_gradients_travel_once_for_each_step(batches: list[int], size: int) -> None:
    steps = -(-len(batches) // size)
    synchronising = [
        number == len(window)
        for window in windows(batches, size)
        for number, _ in enumerate(window, start=1)
    ]
    assert sum(synchronising) == steps
    assert len(synchronising) == len(batches)
    assert not batches or synchronising[-1], "what is left over would be in no step"


@given(epochs(), sizes)
def test_the_gradient_of_a_window_is_that_of_one_process_with_all_its_samples(
    epoch: list[list[int]], size: int
) -> None:
    torch.manual_seed(0)
    for window in windows(epoch, size):
        world_size, count = len(window[0]), sum(map(sum, window))
        samples = torch.randn(count, 3, dtype=torch.float64)
        shares = iter(samples.split([n for micro in window for n in micro]))

        averaged = torch.zeros(3, dtype=torch.float64)
        for micro in window:
            for rank in range(len(micro)):
                world = World(rank, rank, world_size, torch.device("cpu"), None)
                averaged += gradient_of(next(shares), count, world) / world_size

        lone = World(0, 0, 1, torch.device("cpu"), None)
        torch.testing.assert_close(
            averaged, gradient_of(samples, count, lone), rtol=1e-9, atol=1e-12
        )


def gradient_of(samples: torch.Tensor, count: int, world: World) -> torch.Tensor:
    """The gradient that a rank hands to DDP for its share of a micro-batch."""
    weights = torch.ones(3, dtype=torch.float64, requires_grad=True)
    loss = global_mean((samples @ weights).tanh().square().sum(), count, world)
    [gradient] = torch.autograd.grad(loss, weights)
    return gradient
