"""DDP314 no-sync-wrong-scope: `no_sync` is around half a step, the forward or the backward.

torchrun --nproc-per-node=4 reproducers/no_sync_wrong_scope.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import session, wrap
from ddpdoctor.stack.trainer import sync_if

STEPS, MICRO_BATCHES = 4, 5

Accumulate = Callable[[Any, list[Tensor]], None]


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    return net.double().to(own_device())


def micro_batches(step: int, rank: int) -> list[Tensor]:
    """Make what a rank sees in one step."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return list(
        torch.randn(MICRO_BATCHES, 4, 6, dtype=torch.float64, generator=generator).to(own_device())
    )


def error(predicted: Tensor, x: Tensor) -> Tensor:
    """Return this micro-batch's share of the mean loss of the window."""
    return (predicted - x.sum(dim=1, keepdim=True)).square().mean() / MICRO_BATCHES


def collectives() -> int:
    """Return how many collectives the group has seen: those that DDP makes are counted too."""
    group: Any = dist.group.WORLD
    return int(group._get_sequence_number_for_group())


def train(model: nn.Module, accumulate: Accumulate) -> None:
    """Take a few steps, each on the gradients of a window of micro-batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        before = collectives()
        accumulate(model, micro_batches(step, dist.get_rank()))
        optimizer.step()
        optimizer.zero_grad()
    # The last step: in the first ones DDP has other things to agree on.
    measured(f"all-reduces in a step of {MICRO_BATCHES} micro-batches: {collectives() - before}")


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree to the bit, and with one process over all micro-batches."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone, world_size = build(), dist.get_world_size()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
    for step in range(STEPS):
        for rank in range(world_size):
            for x in micro_batches(step, rank):
                torch.autograd.backward(error(alone(x), x) / world_size)
        optimizer.step()
        optimizer.zero_grad()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


def add_up_then_leave(model: DistributedDataParallel, window: list[Tensor]) -> None:
    """Add up the losses under no_sync; leave it for the backward, which is to synchronise."""
    with model.no_sync():  # <-- DDP314
        losses = [error(model(x), x) for x in window]
    torch.stack(losses).sum().backward()  # <-- DDP314


@broken()
def forward_alone() -> None:
    """Put all forwards under no_sync, and the one backward outside."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), add_up_then_leave)
    assert not same_on_all_ranks(net.parameters()), "the gradients were reduced after all"
    dist.destroy_process_group()


def run(accumulate: Accumulate) -> None:
    """Train a wrapped model in this way, and check what came of it."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), accumulate)
    check(net)
    dist.destroy_process_group()


def hold_backward(model: DistributedDataParallel, window: list[Tensor]) -> None:
    *rest, last = window
    for x in rest:
        loss = error(model(x), x)
        with model.no_sync():
            loss.backward()
    error(model(last), last).backward()


@documented(source="facebookresearch/ClassyVision, before #706")
def backward_alone() -> None:
    """Put the backward alone under no_sync, all but the last."""
    run(hold_backward)


def hold_forward(model: DistributedDataParallel, window: list[Tensor]) -> None:
    *rest, last = window
    for x in rest:
        with model.no_sync():
            loss = error(model(x), x)
        loss.backward()
    error(model(last), last).backward()


@documented(source="huggingface/accelerate#1726: no_sync affects forward calls only")
def forward_alone_but_for_the_last() -> None:
    """Put the forward alone under no_sync; the last micro-batch is outside, whole."""
    run(hold_forward)


def hold_both(model: DistributedDataParallel, window: list[Tensor]) -> None:
    *rest, last = window
    with model.no_sync():
        for x in rest:
            error(model(x), x).backward()
    error(model(last), last).backward()


@documented(source="PyTorch documentation of DistributedDataParallel, no_sync")
def as_the_documentation_shows() -> None:
    """Put forward and backward of all but the last micro-batch under no_sync."""
    run(hold_both)


def hold_by_condition(model: nn.Module, window: list[Tensor]) -> None:
    for number, x in enumerate(window, start=1):
        with sync_if(model, number == len(window)):
            torch.autograd.backward(error(model(x), x))


@fix()
def both_by_one_condition() -> None:
    """Let the stack's sync_if hold forward and backward of all but the last."""
    with session(backend=backend()) as world:
        net = build()
        train(wrap(net, world), hold_by_condition)
        check(net)


if __name__ == "__main__":
    main()
