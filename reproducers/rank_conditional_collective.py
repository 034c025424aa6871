"""DDP401 rank-conditional-collective: rank 0 alone comes to a barrier.

torchrun --nproc-per-node=4 reproducers/rank_conditional_collective.py broken
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.process_group import session

EPOCHS = 3


def train(end_of_epoch: Callable[[Tensor], None]) -> None:
    """Take one step an epoch; assert that it was taken with the gradients of all ranks."""
    weights = torch.zeros(4, device=own_device())
    for _ in range(EPOCHS):
        gradients = torch.full_like(weights, float(dist.get_rank()))
        dist.all_reduce(gradients)
        weights -= gradients / dist.get_world_size()
        end_of_epoch(weights)
    expected = -EPOCHS * (dist.get_world_size() - 1) / 2
    assert bool((weights == expected).all()), f"weights {weights.tolist()}, not {expected}"
    assert same_on_all_ranks([weights]), "the weights differ between the ranks"
    saved = torch.load(shared_folder() / "last.pt", map_location=own_device())
    assert torch.equal(saved["weights"], weights), "the last checkpoint is not of the last epoch"


def save_and_wait(weights: Tensor) -> None:
    if dist.get_rank() == 0:
        torch.save({"weights": weights}, shared_folder() / "last.pt")
        dist.barrier()  # <-- DDP401


@broken(ranks=(0,))
def barrier_under_rank_0() -> None:
    """Rank 0 saves and waits for the others, in one if."""
    dist.init_process_group(backend())
    train(save_and_wait)
    dist.destroy_process_group()


def save_and_wait_again(weights: Tensor) -> None:
    save_and_wait(weights)
    dist.barrier()


@documented(source="pytorch/pytorch#138322, second program")
def one_more_barrier() -> None:
    """One more barrier after it, for all ranks."""
    dist.init_process_group(backend())
    train(save_and_wait_again)
    dist.destroy_process_group()


@documented(source="lucaberton.com, Fix NCCL_TIMEOUT, quick fix")
def longer_timeout() -> None:
    """init_process_group(timeout=timedelta(hours=1))."""
    dist.init_process_group(backend(), timeout=timedelta(hours=1))
    train(save_and_wait)
    dist.destroy_process_group()


@documented(source="004 further measure 2", promises="an aid")
def nccl_debug() -> None:
    """NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=ALL."""
    os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="ALL")
    dist.init_process_group(backend())
    train(save_and_wait)
    dist.destroy_process_group()


@documented(source="PyTorch documentation, debugging torch.distributed applications")
def torch_distributed_debug() -> None:
    """TORCH_DISTRIBUTED_DEBUG=DETAIL."""
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()  # type: ignore[attr-defined]
    dist.init_process_group(backend())
    train(save_and_wait)
    dist.destroy_process_group()


def save_then_all_wait(weights: Tensor) -> None:
    if dist.get_rank() == 0:
        torch.save({"weights": weights}, shared_folder() / "last.pt")
    dist.barrier()


@fix()
def barrier_on_every_rank() -> None:
    """Rank 0 saves, and every rank waits."""
    with session(backend=backend()):
        train(save_then_all_wait)


@fix()
def save_that_every_rank_calls() -> None:
    """The condition is inside: every rank calls the stack's save."""
    with session(backend=backend()) as world:
        path = shared_folder() / "last.pt"
        train(lambda weights: checkpoint.save({"weights": weights}, path, world))


if __name__ == "__main__":
    main()
