"""DDP410 early-exit: rank 0 leaves while the others still want to communicate.

torchrun --nproc-per-node=4 reproducers/early_exit.py broken
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
)
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import session

STAGES, GOOD_ENOUGH = 4, 0.5


def run_stage(weights: torch.Tensor) -> float:
    """Train a stage: half of what is left is learnt. Return what is left, in the mean."""
    gradients = weights / 2
    dist.all_reduce(gradients)
    weights -= gradients / dist.get_world_size()
    left = weights.mean()
    dist.all_reduce(left)
    return left.item() / dist.get_world_size()


def train(is_enough: Callable[[float], bool]) -> None:
    """Train until it is enough; assert that all ranks have stopped after the same stage."""
    weights = torch.ones(4, device=own_device())
    done = 0
    for stage in range(STAGES):
        left = run_stage(weights)
        done = stage + 1
        if is_enough(left):
            break
    stages = [0] * dist.get_world_size()
    dist.all_gather_object(stages, done)
    assert set(stages) == {1}, f"stages, by rank: {stages}"
    assert same_on_all_ranks([weights]), "the weights differ between the ranks"


@broken(ranks=(0,))
def main_process_exits() -> None:
    """Rank 0 finds the loss good enough, and calls sys.exit(0)."""
    dist.init_process_group(backend())
    weights = torch.ones(4, device=own_device())
    for _ in range(STAGES):
        left = run_stage(weights)
        if dist.get_rank() == 0 and left <= GOOD_ENOUGH:
            sys.exit(0)  # <-- DDP410
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#75097")
def barrier_before_the_exit() -> None:
    """Barrier, destroy_process_group, then exit."""
    dist.init_process_group(backend())

    def leave_politely(left: float) -> bool:
        if dist.get_rank() == 0 and left <= GOOD_ENOUGH:
            dist.barrier()
            dist.destroy_process_group()
            sys.exit(0)
        return False

    train(leave_politely)
    dist.barrier()
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#67204")
def rank_0_waits_for_all_at_the_end() -> None:
    """All stop by the same number; rank 0, the host of the store, leaves last."""
    dist.init_process_group(backend())
    train(lambda left: left <= GOOD_ENOUGH)
    dist.barrier()
    dist.destroy_process_group()


@fix()
def all_ranks_are_told() -> None:
    """Rank 0 decides, the others are told, all leave by the same way."""
    with session(backend=backend()) as world:
        train(lambda left: on_main(world, lambda: left <= GOOD_ENOUGH))


@fix()
def equal_numbers_equal_decisions() -> None:
    """The reduced loss is the same on all ranks, and so is what follows from it."""
    with session(backend=backend()):
        train(lambda left: left <= GOOD_ENOUGH)


if __name__ == "__main__":
    main()
