"""DDP404 one-rank-raises: rank 0 finds no checkpoint and raises; the others wait for it.

torchrun --nproc-per-node=4 reproducers/one_rank_raises.py broken
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device, shared_folder
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import session

State = dict[str, Any]


def resume_or_start(load: Callable[[Path], State]) -> None:
    """Resume from a checkpoint that is not there: begin with epoch 0, as all the others do."""
    try:
        first = load(shared_folder() / "last.pt")["epoch"] + 1
    except (FileNotFoundError, CheckpointError) as error:
        print(f"rank {dist.get_rank()} starts afresh: {error}")
        first = 0
    train(first)


def train(first: int) -> None:
    """Take a step; assert that all ranks have begun with the same epoch."""
    epochs = torch.zeros(dist.get_world_size(), device=own_device())
    epochs[dist.get_rank()] = first
    dist.all_reduce(epochs)
    assert not epochs.any(), f"first epochs, by rank: {epochs.tolist()}"


def load_on_main(path: Path) -> State:
    """Load on rank 0 and share."""
    state: list[State] = [{}]
    if dist.get_rank() == 0:
        if not path.exists():
            raise FileNotFoundError(f"there is no checkpoint {path.name}")  # <-- DDP404
        state = [torch.load(path, map_location="cpu")]
    dist.broadcast_object_list(state)
    return state[0]


@broken(ranks=(0,))
def raise_before_the_broadcast() -> None:
    """Rank 0 looks for the file and raises; the others wait for its broadcast."""
    dist.init_process_group(backend())
    train(load_on_main(shared_folder() / "last.pt")["epoch"] + 1)
    dist.destroy_process_group()


def load_resume_state(path: Path) -> State:
    """Load with a look at the file on rank 0 first, and a barrier before and after."""
    if dist.get_rank() == 0:
        if not path.exists():
            raise FileNotFoundError(f"there is no checkpoint {path.name}")
        if path.stat().st_size == 0:
            raise RuntimeError(f"the checkpoint {path.name} is empty")
    dist.barrier()
    try:
        state: State = torch.load(path, map_location="cpu")
    except Exception as error:
        print(f"rank {dist.get_rank()} cannot load {path.name}: {error}")
        raise
    dist.barrier()
    return state


@documented(source="004 fix 1, load_resume_state")
def rank_0_checks_then_barrier() -> None:
    """Rank 0 checks, then barrier, load, barrier; without a file, start afresh."""
    dist.init_process_group(backend())
    resume_or_start(load_resume_state)
    dist.destroy_process_group()


@documented(source="004 fix 1, load_resume_state")
def all_try_then_barrier() -> None:
    """The same, where the file is there, and one rank cannot see it."""
    dist.init_process_group(backend())
    if dist.get_rank() == 0:
        torch.save({"epoch": 4}, shared_folder() / "last.pt")
    sees = dist.get_rank() < dist.get_world_size() - 1
    resume_or_start(lambda path: load_resume_state(path if sees else path.with_name("none.pt")))
    dist.destroy_process_group()


def cleanup() -> None:
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


@documented(source="004 fix 1, with upstream's cleanup at exit")
def rank_0_checks_before_an_exit_hook() -> None:
    """Rank 0 checks, then barrier; a barrier at exit, too."""
    dist.init_process_group(backend())
    atexit.register(cleanup)
    train(load_resume_state(shared_folder() / "last.pt")["epoch"] + 1)


def load_and_always_tear_down(path: Path) -> State:
    """Load, and leave the group together whatever happened."""
    try:
        return load_resume_state(path)
    except Exception:
        dist.barrier()
        dist.destroy_process_group()
        raise


@documented(source="pytorch/pytorch#124961")
def always_destroy_the_group() -> None:
    """After an exception, too: barrier, destroy_process_group."""
    dist.init_process_group(backend())
    train(load_and_always_tear_down(shared_folder() / "last.pt")["epoch"] + 1)
    dist.destroy_process_group()


@fix()
def stack_load_raises_everywhere() -> None:
    """The stack's load: what one rank cannot read raises on all."""
    with session(backend=backend()) as world:
        resume_or_start(lambda path: checkpoint.load(path, world))
        refusals: list[str] = [""] * world.world_size
        dist.all_gather_object(refusals, refusal_by_the_last_rank())
        assert refusals[0], "a rank that sees no file does not say so"
        assert len(set(refusals)) == 1, f"the ranks raised {refusals}"


def refusal_by_the_last_rank() -> str:
    """Return what a rank raises where the last one alone cannot see the file."""
    with session() as world:
        mine = shared_folder() / "seen.pt"
        if world.is_main:
            torch.save({"epoch": 4}, mine)
        dist.barrier()
        if world.rank == world.world_size - 1:
            mine = mine.with_name("unseen.pt")
        try:
            checkpoint.load(mine, world)
        except CheckpointError as error:
            return str(error)
    return ""


@fix()
def rank_0_decides_for_all() -> None:
    """Rank 0 looks, every rank is told, all go one way."""
    with session(backend=backend()) as world:
        path = shared_folder() / "last.pt"
        found = on_main(world, path.exists)
        train(checkpoint.load(path, world)["epoch"] + 1 if found else 0)


if __name__ == "__main__":
    main()
