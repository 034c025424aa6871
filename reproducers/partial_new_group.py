"""DDP408 partial-new-group: `new_group` is called by its members alone.

torchrun --nproc-per-node=4 reproducers/partial_new_group.py broken
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session

Group = dist.ProcessGroup | None
ONE_SECOND = timedelta(seconds=1)  # not the half hour that they would wait


def members() -> list[int]:
    """The lower half of the ranks, which share a generator."""
    return list(range((dist.get_world_size() + 1) // 2))


def check(make: Callable[[list[int]], Group], timeout: timedelta | None = None) -> None:
    """Assert that a sum in the group is that of its members, and one in the next that of all."""
    group, mine = make(members()), dist.get_rank() in members()
    total = torch.tensor(1.0, device=own_device())
    if mine:
        dist.all_reduce(total, group=group)
    expected = len(members()) if mine else 1
    assert total.item() == expected, f"sum {total.item()} in the group, not {expected}"
    everyone = dist.new_group(
        timeout=timeout
    )  # the next group: one of all ranks, say for checkpoints
    world = torch.tensor(1.0, device=own_device())
    dist.all_reduce(world, group=everyone)
    assert world.item() == dist.get_world_size(), f"sum {world.item()} over all ranks"


def make_as_member(ranks: list[int]) -> Group:
    group: Group = None
    if dist.get_rank() in ranks:
        group = dist.new_group(ranks)  # <-- DDP408
    return group


@broken(ranks=())
def members_alone_make_it() -> None:
    """The members make their group, the others go on."""
    dist.init_process_group(backend())
    check(make_as_member, ONE_SECOND)
    dist.destroy_process_group()


def make_with_backend(ranks: list[int]) -> Group:
    group: Group = None
    if dist.get_rank() in ranks:
        group = dist.new_group(ranks, backend=backend())
    return group


@documented(source="pytorch/pytorch#28247")
def only_mpi_needs_all() -> None:
    """The members alone, with gloo or NCCL named: "only MPI needs all processes"."""
    dist.init_process_group(backend())
    check(make_with_backend, ONE_SECOND)
    dist.destroy_process_group()


@documented(source="pytorch/pytorch#25390")
def every_rank_makes_every_group() -> None:
    """All ranks call new_group for this group and for the other half."""
    dist.init_process_group(backend())

    def make(ranks: list[int]) -> Group:
        others = [rank for rank in range(dist.get_world_size()) if rank not in ranks]
        group: Group = dist.new_group(ranks)
        dist.new_group(others)
        return group

    check(make)
    dist.destroy_process_group()


@documented(source="PyTorch documentation of new_group")
def local_synchronisation() -> None:
    """use_local_synchronization=True; the members alone."""
    dist.init_process_group(backend())

    def make(ranks: list[int]) -> Group:
        group: Group = None
        if dist.get_rank() in ranks:
            group = dist.new_group(ranks, use_local_synchronization=True)
        return group

    check(make)
    dist.destroy_process_group()


@fix()
def all_ranks_members_or_not() -> None:
    """Every rank calls new_group; only the members use it."""
    with session(backend=backend()):
        check(lambda ranks: dist.new_group(ranks))


@fix()
def halves_by_enumeration() -> None:
    """new_subgroups_by_enumeration makes all groups on all ranks."""
    with session(backend=backend()):

        def make(ranks: list[int]) -> Group:
            others = [rank for rank in range(dist.get_world_size()) if rank not in ranks]
            halves = [ranks, others]
            group: Group
            group, _ = dist.new_subgroups_by_enumeration(halves)  # type: ignore[no-untyped-call]
            return group

        check(make)


if __name__ == "__main__":
    main()
