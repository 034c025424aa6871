"""DDP315 accumulation-off-by-one: the micro-batch that synchronises is not the one that steps.

torchrun --nproc-per-node=4 reproducers/accumulation_off_by_one.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
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
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.process_group import session, wrap
from ddpdoctor.stack.trainer import sync_if, windows

ACCUMULATE, EPOCHS = 4, 2
LENGTH = 10  # two whole windows and a half one


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    return net.double().to(own_device())


def loader(epoch: int, rank: int) -> list[Tensor]:
    """Make the micro-batches of one rank for one epoch."""
    generator = torch.Generator().manual_seed(1000 * epoch + rank)
    return list(
        torch.randn(LENGTH, 4, 6, dtype=torch.float64, generator=generator).to(own_device())
    )


def error(predicted: Tensor, x: Tensor) -> Tensor:
    return (predicted - x.sum(dim=1, keepdim=True)).square().mean() / ACCUMULATE


TrainEpoch = Callable[[Any, list[Tensor], torch.optim.Optimizer], None]


def train(model: nn.Module, train_epoch: TrainEpoch) -> None:
    """Train on this rank's micro-batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(EPOCHS):
        train_epoch(model, loader(epoch, dist.get_rank()), optimizer)


def check(trained: nn.Module) -> None:
    """Assert that the ranks agree to the bit, and with one process over the same micro-batches."""
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    alone, ranks = build(), dist.get_world_size()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.05)
    for epoch in range(EPOCHS):
        everyones = zip(*(loader(epoch, rank) for rank in range(ranks)), strict=True)
        for window in windows(everyones, ACCUMULATE):
            for micro_batch in window:
                for x in micro_batch:
                    torch.autograd.backward(error(alone(x), x) / ranks)
            optimizer.step()
            optimizer.zero_grad()
    for parameter, expected in zip(trained.parameters(), alone.parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def two_conditions() -> None:
    """Synchronise where i % k == 0, step where (i + 1) % k == 0."""
    dist.init_process_group(backend())
    net = build()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(EPOCHS):
        for i, x in enumerate(loader(epoch, dist.get_rank())):
            with nullcontext() if i % ACCUMULATE == 0 else model.no_sync():  # <-- DDP315
                error(model(x), x).backward()
            if (i + 1) % ACCUMULATE == 0:  # <-- DDP315
                optimizer.step()  # <-- DDP315
                optimizer.zero_grad()
    del model, optimizer
    assert not same_on_all_ranks(net.parameters()), "the steps were synchronised after all"
    dist.destroy_process_group()


def run(train_epoch: TrainEpoch) -> None:
    """Train a wrapped model in this way, and check what came of it."""
    dist.init_process_group(backend())
    net = build()
    train(DistributedDataParallel(net), train_epoch)
    check(net)
    dist.destroy_process_group()


def flush_at_the_end(
    model: DistributedDataParallel, batches: list[Tensor], optimizer: torch.optim.Optimizer
) -> None:
    for i, x in enumerate(batches):
        full = (i + 1) % ACCUMULATE == 0
        with nullcontext() if full else model.no_sync():
            error(model(x), x).backward()
        if full or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


@documented(source="kozodoi.me, gradient accumulation in PyTorch: or the last batch")
def step_on_the_last_one_too() -> None:
    """Add "or last batch" to the condition that steps, and to no other."""
    run(flush_at_the_end)


def leave_the_rest(
    model: DistributedDataParallel, batches: list[Tensor], optimizer: torch.optim.Optimizer
) -> None:
    optimizer.zero_grad()
    for i, x in enumerate(batches):
        full = (i + 1) % ACCUMULATE == 0
        with nullcontext() if full else model.no_sync():
            error(model(x), x).backward()
        if full:
            optimizer.step()
            optimizer.zero_grad()


@documented(source="discuss.pytorch.org/t/55955: step where (i + 1) % k == 0")
def leave_the_rest_out() -> None:
    """Use one condition, by the index alone; zero_grad where an epoch begins."""
    run(leave_the_rest)


def flush_in_sync(
    model: DistributedDataParallel, batches: list[Tensor], optimizer: torch.optim.Optimizer
) -> None:
    for i, x in enumerate(batches):
        last = (i + 1) % ACCUMULATE == 0 or i + 1 == len(batches)
        with nullcontext() if last else model.no_sync():
            error(model(x), x).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


@documented(source="huggingface/accelerate#1624: sync at the end of the data loader")
def sync_on_the_last_one_too() -> None:
    """Use one condition for both, with "or last batch" in it."""
    run(flush_in_sync)


def by_windows(model: nn.Module, batches: list[Tensor], optimizer: torch.optim.Optimizer) -> None:
    for window in windows(batches, ACCUMULATE):
        for number, x in enumerate(window, start=1):
            with sync_if(model, number == len(window)):
                torch.autograd.backward(error(model(x), x))
        optimizer.step()
        optimizer.zero_grad()


@fix()
def cut_into_windows() -> None:
    """Cut the epoch into windows, the last one shorter; sync in each one's last."""
    with session(backend=backend()) as world:
        net = build()
        train(wrap(net, world), by_windows)
        check(net)


if __name__ == "__main__":
    main()
