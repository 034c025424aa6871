"""DDP411 missing-teardown: process groups that are made again and again, and never destroyed.

torchrun --nproc-per-node=4 reproducers/missing_teardown.py broken
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured, own_device
from ddpdoctor.stack.process_group import session

EPOCHS = 10


def descriptors() -> int:
    """Count the open files and sockets of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def add_up(group: dist.ProcessGroup | None) -> None:
    """Add up the ranks in a group, and assert that all took part."""
    total = torch.tensor(dist.get_rank(), device=own_device())
    dist.all_reduce(total, group=group)
    world_size = dist.get_world_size()
    assert total.item() == world_size * (world_size - 1) // 2, f"the sum is {total.item()}"


def growth(evaluate: Callable[[], None]) -> float:
    """Return how many descriptors an evaluation leaves open, on average, after the first."""
    evaluate()
    gc.collect()
    before = descriptors()
    for _ in range(EPOCHS):
        evaluate()
    gc.collect()
    left_open = (descriptors() - before) / EPOCHS
    measured(f"{left_open:g} descriptors stay open for each evaluation")
    return left_open


@broken()
def group_for_each_evaluation() -> None:
    """Make a group in each evaluation, and forget it."""
    dist.init_process_group(backend())
    before = descriptors()
    for _ in range(EPOCHS):
        group = dist.new_group()  # <-- DDP411
        add_up(group)
    left_open = descriptors() - before
    measured(f"{left_open / EPOCHS:g} descriptors stay open for each evaluation")
    assert left_open >= EPOCHS, "the groups left nothing open"
    dist.destroy_process_group()


def run(evaluate: Callable[[], None]) -> None:
    """Evaluate again and again, and assert that nothing piles up."""
    dist.init_process_group(backend())
    left_open = growth(evaluate)
    assert left_open < 1, f"{left_open:g} descriptors stay open for each evaluation"
    dist.destroy_process_group()


def forget_and_collect() -> None:
    group = dist.new_group()
    add_up(group)
    del group
    gc.collect()


@documented(source="pytorch/pytorch#129868: del group, gc.collect()")
def delete_and_collect() -> None:
    """Delete the group and collect garbage after each evaluation."""
    run(forget_and_collect)


def make_and_destroy() -> None:
    group = dist.new_group()
    add_up(group)
    dist.destroy_process_group(group)


@documented(source="NVIDIA/Megatron-LM#6902: destroy the groups that were made")
def destroy_each() -> None:
    """Destroy the group after each evaluation."""
    run(make_and_destroy)


@documented(source="PyTorch documentation of torch.distributed, Shutdown")
def destroy_all_at_the_end() -> None:
    """Destroy the world near the end of main, and with it whatever was made."""
    dist.init_process_group(backend())
    before = descriptors()
    for _ in range(2):
        add_up(dist.new_group())
    assert descriptors() > before, "the groups left nothing open"
    dist.destroy_process_group()
    gc.collect()
    assert descriptors() <= before, f"{descriptors()} descriptors are open, {before} were"


@fix()
def one_group_for_the_session() -> None:
    """Make the group once in a session, which destroys it with the world."""
    with session(backend=backend()):
        group = dist.new_group()
        left_open = growth(lambda: add_up(group))
        assert left_open < 1, f"{left_open:g} descriptors stay open for each evaluation"
    assert not dist.is_initialized(), "the session left its group behind"


if __name__ == "__main__":
    main()
