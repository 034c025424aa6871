"""DDP512 checkpoint-pile-up: checkpoints are never deleted, until the disk is full.

torchrun --nproc-per-node=4 reproducers/checkpoint_pile_up.py broken
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    measured,
    own_device,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import World, session

EPOCHS, BEST_EPOCH, KEEP = 16, 3, 3
CHECKPOINT, DISK = 1 << 18, 2 << 20  # bytes: seven checkpoints fit on the disk

State = dict[str, Any]
Save = Callable[[State, Path, int], None]


def used(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Let a file of rank 0, which writes, grow no further than a disk of this size has left."""
    if dist.get_rank():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(DISK - used(folder), 0), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def train(save: Save, *, wanted: tuple[int, ...] = (BEST_EPOCH, EPOCHS - 1)) -> None:
    """Train and save after each epoch; `wanted` are the epochs that must be there at the end."""
    folder = shared_folder() / "checkpoints"
    folder.mkdir(exist_ok=True)
    weights, peak = torch.zeros(CHECKPOINT // 4, device=own_device()), 0
    for epoch in range(EPOCHS):
        dist.all_reduce(weights)
        with small_disk(folder):
            save({"model": weights + epoch, "epoch": epoch}, folder, epoch)
        dist.barrier()
        peak = max(peak, used(folder))
        dist.barrier()
    measured(f"{EPOCHS} checkpoints of {CHECKPOINT >> 10} kB took {peak >> 10} kB at the most")
    found = [torch.load(file, map_location="cpu") for file in folder.iterdir()]
    assert all(bool((each["model"] == each["epoch"]).all()) for each in found), "one is damaged"
    epochs = sorted(each["epoch"] for each in found)
    missing = sorted({*wanted} - {*epochs})
    assert not missing, f"epochs {epochs} were kept, {missing} wanted (the best is {BEST_EPOCH})"


def save_on_rank_0(state: State, path: Path) -> None:
    if dist.get_rank() == 0:
        torch.save(state, path)  # <-- DDP512


def keep_all(state: State, folder: Path, epoch: int) -> None:
    save_on_rank_0(state, folder / f"checkpoint{epoch:04}.pth")


@broken(ranks=(0,))
def keep_every_checkpoint() -> None:
    """Save after each epoch, and delete nothing."""
    dist.init_process_group(backend())
    train(keep_all)
    dist.destroy_process_group()


def keep_every_second(state: State, folder: Path, epoch: int) -> None:
    if epoch % 2 == 1:
        keep_all(state, folder, epoch)


@documented(source="004 best practice 3", promises="an aid")
def save_less_often() -> None:
    """Save after every second epoch only."""
    dist.init_process_group(backend())
    train(keep_every_second)
    dist.destroy_process_group()


def keep_last(state: State, folder: Path, epoch: int) -> None:
    keep_all(state, folder, epoch)
    if dist.get_rank() == 0:
        for old in sorted(folder.iterdir())[:-KEEP]:
            old.unlink()


@documented(source="004 best practice 1")
def keep_the_last_few() -> None:
    """Keep the last few checkpoints only; nobody needs the best."""
    dist.init_process_group(backend())
    train(keep_last, wanted=tuple(range(EPOCHS - KEEP, EPOCHS)))
    dist.destroy_process_group()


@documented(source="004 best practice 1")
def keep_the_last_few_and_want_the_best() -> None:
    """The same, where stage 2 begins with the best of them."""
    dist.init_process_group(backend())
    train(keep_last)
    dist.destroy_process_group()


def keep_last_by_text(state: State, folder: Path, epoch: int) -> None:
    save_on_rank_0(state, folder / f"checkpoint-{epoch}.pth")
    if dist.get_rank() == 0:
        for old in sorted(folder.iterdir())[:-KEEP]:
            old.unlink()


@documented(source="huggingface/transformers#27138: save_total_limit")
def keep_the_last_by_their_text() -> None:
    """Keep the last few in the order of their names, which have no leading zeros."""
    dist.init_process_group(backend())
    train(keep_last_by_text, wanted=(EPOCHS - 1,))
    dist.destroy_process_group()


def keep_last_and_best(world: World) -> Save:
    """Make a save that prunes as the stack's trainer does."""

    def save(state: State, folder: Path, epoch: int) -> None:
        checkpoint.save(state, folder / f"step_{epoch:09d}.pt", world)
        with together(world):
            if world.is_main:
                checkpoint.prune(folder, KEEP, best=folder / f"step_{BEST_EPOCH:09d}.pt")

    return save


@fix()
def prune_but_the_best() -> None:
    """Keep the last few and the best; the stack's prune, on rank 0, its outcome shared."""
    with session(backend=backend()) as world:
        train(keep_last_and_best(world))
        kept = len(list((shared_folder() / "checkpoints").iterdir()))
        assert kept == KEEP + 1, f"{kept} files were kept"


if __name__ == "__main__":
    main()
