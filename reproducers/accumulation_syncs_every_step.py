"""DDP304 accumulation-syncs-every-step: every micro-batch pays for an all-reduce.

torchrun --nproc-per-node=4 reproducers/accumulation_syncs_every_step.py broken
"""

from __future__ import annotations

import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.profiler import profile
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
from ddpdoctor.stack.loss import global_count, global_mean
from ddpdoctor.stack.process_group import session, wrap
from ddpdoctor.stack.trainer import sync_if, windows

WIDTH, BATCH, MICRO_BATCHES, ACCUMULATE = 8, 4, 10, 4  # the last window has 2 micro-batches
STEPS = 3


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1)).double()


def micro_batches(rank: int, ranks: int) -> list[Tensor]:
    """Return an epoch's micro-batches, as far as they are this rank's."""
    generator = torch.Generator().manual_seed(1)
    total = int(os.environ["WORLD_SIZE"]) * BATCH
    everything = torch.randn(MICRO_BATCHES, total, WIDTH, generator=generator)
    return [each[rank::ranks].double().to(own_device()) for each in everything]


def own_batches() -> list[Tensor]:
    """Return the micro-batches of this rank."""
    return micro_batches(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


def loss_of(model: nn.Module, x: Tensor) -> Tensor:
    return (model(x) - x.sum(dim=1, keepdim=True)).square().mean()


def train_alone() -> nn.Module:
    """Train in one process, on windows of whole micro-batches."""
    model = build().to(own_device())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for window in windows(micro_batches(0, 1), ACCUMULATE):
        optimizer.zero_grad()
        loss_of(model, torch.cat(window)).backward()
        optimizer.step()
    return model


def check(trained: nn.Module, record: profile) -> None:
    """Assert that the ranks agree, also with one process, and count the all-reduces."""
    count = sum(event.name.endswith(":all_reduce") for event in record.function_events or ())
    measured(f"{count} all-reduces of gradients for {STEPS} optimizer steps")
    assert same_on_all_ranks(trained.parameters()), "parameters differ between the ranks"
    for parameter, expected in zip(trained.parameters(), train_alone().parameters(), strict=True):
        off = (parameter - expected).abs().max().item()
        assert off < 1e-12, f"off by {off} from a single process"


@broken()
def accumulate_and_reduce_each_time() -> None:
    """Step after every fourth micro-batch and at the end, and leave the rest to DDP."""
    dist.init_process_group(backend())
    net = build().to(own_device())
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with profile(use_kineto=False) as record:
        for number, x in enumerate(own_batches(), start=1):
            size = ACCUMULATE if number <= MICRO_BATCHES - 2 else 2
            (loss_of(model, x) / size).backward()  # <-- DDP304
            if number % ACCUMULATE == 0 or number == MICRO_BATCHES:
                optimizer.step()
                optimizer.zero_grad()
    check(net, record)
    del model, optimizer
    dist.destroy_process_group()


@documented(source="ultralytics/yolov5#790, pitch")
def step_where_the_index_divides() -> None:
    """no_sync where i % K != 0, and a step where i % K == 0."""
    dist.init_process_group(backend())
    net = build().to(own_device())
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with profile(use_kineto=False) as record:
        for i, x in enumerate(own_batches()):
            my_context = model.no_sync if i % ACCUMULATE != 0 else nullcontext
            with my_context():
                (loss_of(model, x) / ACCUMULATE).backward()
            if i % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
    del model, optimizer
    check(net, record)
    dist.destroy_process_group()


def accumulate(batches: list[Tensor], size: int) -> None:
    """Train as the documentation of no_sync says, in windows of so many batches."""
    dist.init_process_group(backend())
    net = build().to(own_device())
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with profile(use_kineto=False) as record:
        for *inputs, another_input in windows(batches, size):
            share = 1 / (len(inputs) + 1)
            with model.no_sync():
                for x in inputs:
                    (loss_of(model, x) * share).backward()
            (loss_of(model, another_input) * share).backward()
            optimizer.step()
            optimizer.zero_grad()
    del model, optimizer
    check(net, record)
    dist.destroy_process_group()


@documented(source="001 best practice 4", launch="python -m torch.profiler {proof} {variant}")
def profile_from_the_command_line() -> None:
    """Look where the time goes with `python -m torch.profiler train.py`."""
    measured("torch.profiler has started the script")


@documented(source="004 monitoring 2", promises="an aid")
def profile_in_the_script() -> None:
    """Look with torch.profiler.profile around the training: its table counts the all-reduces."""
    dist.init_process_group(backend())
    model = DistributedDataParallel(build().to(own_device()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as record:
        for window in windows(own_batches(), ACCUMULATE):
            for x in window:
                (loss_of(model, x) / len(window)).backward()
            optimizer.step()
            optimizer.zero_grad()
    reduced = sum(e.count for e in record.key_averages() if e.key.endswith(":all_reduce"))
    del model, optimizer
    dist.destroy_process_group()
    assert reduced == STEPS, f"the table has {reduced} all-reduces for {STEPS} optimizer steps"


@documented(source="PyTorch documentation of DistributedDataParallel.no_sync")
def no_sync_for_all_but_the_last() -> None:
    """Forward and backward under no_sync, but for the last micro-batch of a window."""
    accumulate(own_batches(), ACCUMULATE)


@documented(source="002 troubleshooting 3")
def smaller_batches_and_more_of_them() -> None:
    """Against out-of-memory, half the batch size and twice the steps of accumulation."""
    accumulate([half for x in own_batches() for half in x.chunk(2)], 2 * ACCUMULATE)


@fix()
def windows_of_the_stack() -> None:
    """Cut windows, synchronise in their last micro-batch, normalise by their count."""
    with session(backend=backend()) as world:
        net = build()
        model = wrap(net, world)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with profile(use_kineto=False) as record:
            for window in windows(own_batches(), ACCUMULATE):
                count = BATCH * len(window) * world.world_size
                for number, x in enumerate(window, start=1):
                    with sync_if(model, number == len(window)):
                        global_mean(loss_of(model, x) * len(x), count, world).backward()
                optimizer.step()
                optimizer.zero_grad()
        assert count == global_count(sum(map(len, window)), world), "a window was miscounted"
        del model, optimizer
        check(net, record)


if __name__ == "__main__":
    main()
