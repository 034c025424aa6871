"""DDP102 double-init: two parts of a program each set up the process group.

torchrun --nproc-per-node=4 reproducers/double_init.py broken
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device
from ddpdoctor.stack.process_group import session


class Logger:
    """Writes on rank 0 alone, and so has to know the rank."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()

    def log(self, text: str) -> None:
        """Print the text, once for all ranks."""
        if self.rank == 0:
            print(text)


def check_group() -> None:
    """Assert that all ranks are in one group, and that it works."""
    world_size = int(os.environ["WORLD_SIZE"])
    assert dist.get_world_size() == world_size, f"{dist.get_world_size()} ranks in the group"
    total = torch.ones(1, device=own_device())
    dist.all_reduce(total)
    assert total.item() == world_size, f"the sum over the ranks is {total.item()}"


def set_up() -> None:
    """Join the process group, as main and the logger's factory both do."""
    dist.init_process_group(backend())  # <-- DDP102


@broken()
def both_join() -> None:
    """Join in main, and once more in the factory of the logger."""
    set_up()
    check_group()
    set_up()
    Logger().log("ready")
    check_group()
    dist.destroy_process_group()


def set_up_once() -> None:
    if not dist.is_initialized():
        dist.init_process_group(backend())


@documented(source="NVIDIA/Megatron-LM#521")
def ask_before_joining() -> None:
    """Ask is_initialized() first, and join only if there is no group."""
    set_up_once()
    set_up_once()
    Logger().log("ready")
    check_group()
    dist.destroy_process_group()


@documented(source="000 fix 3 of train.py")
def reuse_the_group_that_is_there() -> None:
    """Have the set-up reuse the group that is there, and say which rank this is in it."""
    set_up_once()
    first = dist.get_rank()
    set_up_once()
    assert dist.get_rank() == first
    check_group()
    dist.destroy_process_group()


@contextlib.contextmanager
def logger_of_its_own() -> Iterator[Logger]:
    """Set up what the logger needs: a part that does not know who else has joined."""
    with session(backend=backend()):
        yield Logger()


@fix()
def sessions_that_nest() -> None:
    """Open a session in each part: the outer one owns the group, the inner one joins it."""
    with session(backend=backend()):
        with logger_of_its_own() as logger:
            logger.log("ready")
        assert dist.is_initialized(), "the inner part has taken the group down"
        check_group()


if __name__ == "__main__":
    main()
