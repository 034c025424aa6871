"""DDP216 scheduler-on-local-metric: each rank lowers its learning rate by its own metric.

torchrun --nproc-per-node=4 reproducers/scheduler_on_local_metric.py broken
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    same_on_all_ranks,
)
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.process_group import World, session, unwrap, wrap
from ddpdoctor.stack.samplers import exact_shard

LENGTH, EPOCHS, STEPS = 40, 8, 4

INPUTS = torch.linspace(-1, 1, LENGTH)[:, None]
TARGETS = torch.ones(LENGTH)
LABELS = torch.where(torch.arange(LENGTH) == 0, -100.0, 1.0)  # to validate with; one is wrong


def stack(samples: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(samples))


def train_epoch(model: nn.Module, optimizer: SGD, world: World) -> None:
    """Take some steps, on this rank's part of the data."""
    mine = exact_shard(LENGTH, world.rank, world.world_size)
    for _ in range(STEPS):
        optimizer.zero_grad()
        ((model(INPUTS[mine]) - TARGETS[mine]) ** 2).mean().backward()
        optimizer.step()


def local_loss(model: nn.Module, world: World) -> float:
    """Return the loss over this rank's share of the validation set."""
    mine = exact_shard(LENGTH, world.rank, world.world_size)
    with torch.no_grad():
        return nn.functional.mse_loss(unwrap(model)(INPUTS[mine]), LABELS[mine]).item()


def loss_of_all(model: nn.Module, world: World) -> float:
    """Return the loss over the validation set, from the predictions of all ranks."""
    predicted = predict(model, list(INPUTS), stack, 8, world)
    return nn.functional.mse_loss(predicted, LABELS.double()).item()


def start(world: World) -> tuple[nn.Module, SGD, ReduceLROnPlateau]:
    """Make what is trained, what trains it, and what lowers its learning rate."""
    torch.manual_seed(0)
    model = wrap(nn.Sequential(nn.Linear(1, 1), nn.Flatten(0)), world)
    optimizer = SGD(model.parameters(), lr=0.1)
    return model, optimizer, ReduceLROnPlateau(optimizer, factor=0.5, patience=1)


def check(model: nn.Module, optimizer: SGD, world: World) -> None:
    """Assert that all ranks have the same learning rate, and the same parameters to the bit."""
    rates = [0.0] * world.world_size
    dist.all_gather_object(rates, optimizer.param_groups[0]["lr"])
    told = ", ".join(f"{rate:.3g}" for rate in rates)
    measured(f"learning rates by rank: {told}")
    equal = same_on_all_ranks(model.parameters())
    assert len(set(rates)) == 1, f"the learning rates of the ranks are {told}"
    assert equal, "parameters differ between the ranks"


@broken()
def step_on_the_rank_s_own_loss() -> None:
    """Step the scheduler with the loss over the rank's own shard."""
    with session(backend=backend()) as world:
        model, optimizer, scheduler = start(world)
        for _ in range(EPOCHS):
            train_epoch(model, optimizer, world)
            scheduler.step(local_loss(model, world))  # <-- DDP216


@documented(source="huggingface/accelerate#3797, what AcceleratedScheduler does")
def step_as_often_as_there_are_ranks() -> None:
    """Step every rank's scheduler once per rank, with the loss over all predictions."""
    with session(backend=backend()) as world:
        model, optimizer, scheduler = start(world)
        losses = []
        for _ in range(EPOCHS):
            train_epoch(model, optimizer, world)
            losses.append(loss_of_all(model, world))
            for _ in range(world.world_size):
                scheduler.step(losses[-1])
        check(model, optimizer, world)
        alone = SGD([torch.zeros(1)], lr=0.1)
        once = ReduceLROnPlateau(alone, factor=0.5, patience=1)
        for loss in losses:
            once.step(loss)
        rates = [each.param_groups[0]["lr"] for each in (optimizer, alone)]
        told = f"the learning rate is {rates[0]:.3g}; one process comes to {rates[1]:.3g}"
        assert rates[0] == rates[1], told


@documented(source="Lightning-AI/pytorch-lightning#8190, sync_dist=True")
def step_on_the_average() -> None:
    """Average the loss over the ranks, then step on every rank."""
    with session(backend=backend()) as world:
        model, optimizer, scheduler = start(world)
        for _ in range(EPOCHS):
            train_epoch(model, optimizer, world)
            loss = torch.tensor(local_loss(model, world))
            dist.all_reduce(loss)
            scheduler.step(loss.item() / world.world_size)
        check(model, optimizer, world)


@fix()
def step_on_the_metric_of_all() -> None:
    """Step every rank's scheduler with the loss over all predictions."""
    with session(backend=backend()) as world:
        model, optimizer, scheduler = start(world)
        for _ in range(EPOCHS):
            train_epoch(model, optimizer, world)
            scheduler.step(loss_of_all(model, world))
        check(model, optimizer, world)


if __name__ == "__main__":
    main()
