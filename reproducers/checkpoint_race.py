"""DDP501 checkpoint-race: ranks load a checkpoint that rank 0 is still writing.

torchrun --nproc-per-node=4 reproducers/checkpoint_race.py broken
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.process_group import session

EPOCHS = 2  # two races in a launch
TENSORS, MEGABYTES_EACH = 12, 1  # 12 MB, a small detector

State = dict[str, Any]


def make_state(epoch: int) -> State:
    """Make a checkpoint in which every number is the epoch."""
    shape = (MEGABYTES_EACH, 512, 512)
    weights = {f"layer{i}": torch.full(shape, float(epoch)) for i in range(TENSORS)}
    return {"model": weights, "last_epoch": epoch}


def train(save: Callable[[State, Path], None], load: Callable[[Path], State]) -> None:
    """Go through epochs that are each the best so far, and start each from the best before it.

    A switch from stage 1 to stage 2 of a training does that once.
    """
    path = shared_folder() / "best_stg1.pth"
    state: State = {}
    for epoch in range(EPOCHS + 1):
        if dist.get_rank() == 0:
            state = make_state(epoch)
        # The last gradients of the epoch: all ranks leave it together.
        dist.all_reduce(torch.ones(1, device=own_device()))
        if epoch == 0 and dist.get_rank() == 0:
            torch.save(state, path)
        if epoch > 0:
            save(state, path)
            check(load(path), epoch)


def check(state: State, expected: int) -> None:
    """Assert that every rank has loaded the checkpoint of the expected epoch, and all of it."""
    epoch = state["last_epoch"]
    whole = all(bool((weight == epoch).all()) for weight in state["model"].values())
    loaded: list[tuple[int, bool]] = [(0, False)] * dist.get_world_size()
    dist.all_gather_object(loaded, (epoch, whole))
    assert all(whole for _, whole in loaded), f"(epoch, is whole) by rank: {loaded}"
    epochs = [epoch for epoch, _ in loaded]
    assert set(epochs) == {expected}, f"epochs loaded, by rank: {epochs}; not {expected}"


def save_on_master(state: State, path: Path) -> None:
    if dist.get_rank() == 0:
        torch.save(state, path)  # <-- DDP501


def load(path: Path) -> State:
    state: State = torch.load(path, map_location="cpu")  # <-- DDP501
    return state


@broken(ranks="nonzero", launches=5)
def load_while_rank_0_saves() -> None:
    """Rank 0 saves in place; the others go on and load."""
    dist.init_process_group(backend())
    train(save_on_master, load)
    dist.destroy_process_group()


def barrier_then_load(path: Path) -> State:
    dist.barrier()
    return load(path)


@documented(source="004 fix 2", launches=2)
def barrier_before_the_load() -> None:
    """Barrier at the stage switch, before every rank loads."""
    dist.init_process_group(backend())
    train(save_on_master, barrier_then_load)
    dist.destroy_process_group()


def load_resume_state(path: Path) -> State:
    """Load with a look at the file on rank 0 first, and a barrier before and after."""
    if dist.get_rank() == 0:
        if not path.exists():
            raise FileNotFoundError(f"there is no checkpoint {path}")
        if path.stat().st_size == 0:
            raise RuntimeError(f"the checkpoint {path} is empty")
    dist.barrier()
    try:
        state = load(path)
    except Exception as error:
        print(f"rank {dist.get_rank()} cannot load {path}: {error}")
        raise
    dist.barrier()
    return state


@documented(source="004 fix 1", launches=2)
def barriers_around_the_load() -> None:
    """Rank 0 checks existence and size, then barrier, load, barrier."""
    dist.init_process_group(backend())
    train(save_on_master, load_resume_state)
    dist.destroy_process_group()


def verify_checkpoint(path: Path) -> bool:
    """Say whether the file is a zip archive whose members all have the right checksum."""
    try:
        with zipfile.ZipFile(path) as archive:
            if (member := archive.testzip()) is not None:
                raise RuntimeError(f"{member} is corrupt")
    except Exception as error:
        print(f"rank {dist.get_rank()}: {path.name}: {error}")
        return False
    return True


def verify_then_load(path: Path) -> State:
    if not verify_checkpoint(path):
        raise RuntimeError(f"{path.name} is not whole")
    return load(path)


@documented(source="004 further measure 5", launches=2)
def verify_before_the_load() -> None:
    """Each rank tests the zip archive before it loads; no barrier."""
    dist.init_process_group(backend())
    train(save_on_master, verify_then_load)
    dist.destroy_process_group()


def safe_torch_save(state: State, path: Path) -> None:
    """Save to a temporary file of fixed name, rename it, then sync it; as given, without a lock."""
    if dist.get_rank() == 0:
        temporary = Path(f"{path}.tmp")
        torch.save(state, temporary)
        temporary.replace(path)
        with path.open("rb") as file:
            os.fsync(file.fileno())


@documented(source="004 further measure 6", launches=2)
def rename_without_a_barrier() -> None:
    """Rank 0 saves by safe_torch_save; no barrier."""
    dist.init_process_group(backend())
    train(safe_torch_save, load)
    dist.destroy_process_group()


def save_then_wait(state: State, path: Path) -> None:
    save_on_master(state, path)
    dist.barrier()  # what accelerator.wait_for_everyone() does


@documented(source="002 fix 4", launches=2)
def save_on_main_then_wait() -> None:
    """Save on the main process alone, then wait_for_everyone."""
    dist.init_process_group(backend())
    train(save_then_wait, load)
    dist.destroy_process_group()


@fix()
def atomic_save_with_a_shared_outcome() -> None:
    """Temporary file, fsync, rename; every rank learns the outcome."""
    with session(backend=backend()) as world:
        train(
            lambda state, path: checkpoint.save(state, path, world),
            lambda path: checkpoint.load(path, world),
        )


if __name__ == "__main__":
    main()
