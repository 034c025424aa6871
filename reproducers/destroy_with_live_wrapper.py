"""DDP419 destroy-with-live-wrapper: the process group is destroyed while a DDP object is alive.

torchrun --nproc-per-node=4 reproducers/destroy_with_live_wrapper.py broken
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import nn
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

MODELS, STEPS = 6, 3
ROUNDS = 4  # it is a race: one destruction in ten or so loses it where the ranks are watched
PATIENCE = 2  # seconds that a rank has to leave; it takes some milliseconds


def build() -> nn.Module:
    """Build the same model on every rank."""
    torch.manual_seed(0)
    return nn.Linear(6, 1).to(own_device())


def wrapped() -> list[DistributedDataParallel]:
    """Wrap several models, as a GAN or an actor with its critics has them."""
    return [DistributedDataParallel(build()) for _ in range(MODELS)]


def train(models: Sequence[nn.Module]) -> None:
    """Train on this rank's batches; before the last step, assert that the ranks are equal."""
    parameters = [parameter for model in models for parameter in model.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(STEPS):
        if step == STEPS - 1:
            assert same_on_all_ranks(parameters), "parameters differ between the ranks"
        x = torch.randn(4, 6, generator=generator).to(own_device())
        optimizer.zero_grad()
        torch.autograd.backward(torch.stack([model(x).square().mean() for model in models]).sum())
        optimizer.step()


def end_if_it_hangs() -> None:
    """Have the kernel end this rank if it is still there then: no Python of its own could."""
    signal.alarm(PATIENCE)


def over_and_over(job: Callable[[], None]) -> None:
    """Do a job that ends with its group several times."""
    for _ in range(ROUNDS):
        job()
        signal.alarm(0)


@broken(ranks="any", launches=10)
def destroy_at_the_end_of_main() -> None:
    """Destroy the group at the end of the function that holds the wrappers."""

    def job() -> None:
        dist.init_process_group(backend())
        models = wrapped()
        train(models)
        end_if_it_hangs()
        dist.destroy_process_group()  # <-- DDP419

    over_and_over(job)


@documented(source="pytorch/pytorch#75097, EIFY/mup-vit#7: barrier before it", launches=10)
def barrier_first() -> None:
    """Let all ranks come to a barrier, then destroy the group."""

    def job() -> None:
        dist.init_process_group(backend())
        models = wrapped()
        train(models)
        end_if_it_hangs()
        dist.barrier()
        dist.destroy_process_group()

    over_and_over(job)


@fix(launches=2)
def delete_the_wrappers_first() -> None:
    """Delete the wrappers (the optimizer is gone), then destroy the group."""

    def job() -> None:
        dist.init_process_group(backend())
        models = wrapped()
        train(models)
        del models
        end_if_it_hangs()
        dist.destroy_process_group()

    over_and_over(job)


@fix(launches=5)
def session_sees_to_it() -> None:
    """Let the session destroy the group, or leave it alone where a wrapper is still alive."""
    with session(backend=backend()) as world:
        train([wrap(build(), world) for _ in range(MODELS)])
    assert not dist.is_initialized(), "the session left its group behind"
    with session(backend=backend()) as world:
        models = [wrap(build(), world) for _ in range(MODELS)]
        train(models)
        end_if_it_hangs()
    assert dist.is_initialized(), "the session destroyed the group under a living wrapper"


if __name__ == "__main__":
    main()
