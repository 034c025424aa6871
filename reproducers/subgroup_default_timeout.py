"""DDP415 subgroup-default-timeout: `new_group` does not inherit the timeout of the world.

torchrun --nproc-per-node=4 reproducers/subgroup_default_timeout.py broken
"""

from __future__ import annotations

from datetime import timedelta

import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, measured, own_device
from ddpdoctor.stack.process_group import session

TIMEOUT = timedelta(seconds=8)


def timeout_of(group: dist.ProcessGroup | None) -> timedelta:
    """Read back how long the collectives of a group wait; None is the world."""
    group = group or dist.group.WORLD
    assert group is not None, "there is no process group"
    timeout: timedelta = group._get_backend(own_device()).options._timeout
    return timeout


def check(subgroup: dist.ProcessGroup | None) -> None:
    """Assert that the world and the subgroup wait equally long, on every rank."""
    found = timeout_of(None), timeout_of(subgroup)
    everywhere = [found] * dist.get_world_size()
    dist.all_gather_object(everywhere, found)
    world, least, most = found[0], min(map(min, everywhere)), max(map(max, everywhere))
    measured(f"timeout of the world {world}, of the subgroup {timeout_of(subgroup)}")
    assert world == TIMEOUT, f"the world waits {world}"
    assert least == most == TIMEOUT, f"the world waits {least}, the subgroup {most}"


@broken()
def timeout_for_the_world_alone() -> None:
    """Give init_process_group a timeout, and new_group none."""
    dist.init_process_group(backend(), timeout=TIMEOUT)
    pair = dist.new_group([0, 1])  # <-- DDP415
    check(pair if dist.get_rank() < 2 else None)
    dist.destroy_process_group()


@documented(source="NVIDIA/Megatron-LM#723: pass timeout to new_group")
def timeout_for_each_group() -> None:
    """Pass the same timeout to every new_group."""
    dist.init_process_group(backend(), timeout=TIMEOUT)
    pair = dist.new_group([0, 1], timeout=TIMEOUT)
    check(pair if dist.get_rank() < 2 else None)
    dist.destroy_process_group()


@fix()
def timeout_from_one_constant() -> None:
    """Take the timeouts of session and subgroup from one constant, and read both back."""
    with session(backend=backend(), timeout=TIMEOUT):
        pair = dist.new_group([0, 1], timeout=TIMEOUT)
        check(pair if dist.get_rank() < 2 else None)


if __name__ == "__main__":
    main()
