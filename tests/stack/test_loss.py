"""DDP's gradient, with the loss normalised by the global count, is that of one process."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from ddpdoctor.stack.loss import global_count, global_mean
from ddpdoctor.stack.process_group import World, session, wrap
from ddpdoctor.stack.trainer import sync_if

# How many samples each rank has in each micro-batch of one accumulation window.
WINDOWS = {
    "even": [[3, 3, 3, 3]],
    "uneven": [[4, 3, 2, 1]],
    "a rank without samples": [[3, 3, 0, 1]],
    "accumulated, uneven, last ones empty": [[3, 3, 3, 3], [3, 2, 3, 2], [1, 0, 0, 0]],
}


@pytest.mark.distributed(nproc=4)
def test_gradients_at_4_ranks_equal_one_process_with_the_global_batch() -> None:
    torch.set_default_dtype(torch.float64)
    with session() as world:
        for window, counts in WINDOWS.items():
            check(window, counts, world)


def check(window: str, counts: list[list[int]], world: World) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 1))
    lone = copy.deepcopy(model)
    inputs = torch.randn(sum(map(sum, counts)), 6)

    lone(inputs).square().mean().backward()

    net = wrap(model, world)
    shares = inputs.split([n for micro in counts for n in micro])
    mine = [shares[4 * micro + world.rank] for micro in range(len(counts))]
    count = global_count(sum(map(len, mine)), world)
    for number, share in enumerate(mine, start=1):
        with sync_if(net, number == len(mine)):
            global_mean(net(share).square().sum(), count, world).backward()

    assert count == len(inputs), window
    for ours, theirs in zip(model.parameters(), lone.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-9, atol=1e-15)
