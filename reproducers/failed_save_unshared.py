"""DDP511 failed-save-unshared: rank 0 cannot write the checkpoint, and the others wait for it.

torchrun --nproc-per-node=4 reproducers/failed_save_unshared.py broken
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
    own_device,
    same_on_all_ranks,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.process_group import World, session

EPOCHS, FULL_FROM = 4, 2
QUOTA = 1 << 20  # bytes in a file; a checkpoint has four times as many

State = dict[str, Any]


@contextmanager
def full_disk(epoch: int) -> Iterator[None]:
    """From some epoch on, let rank 0 write no large file: what a full disk or a quota does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if dist.get_rank() == 0 and epoch >= FULL_FROM:
        resource.setrlimit(resource.RLIMIT_FSIZE, (QUOTA, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Trainer:
    """Trains, and saves after each epoch."""

    def __init__(self) -> None:
        self.weights = torch.zeros(QUOTA, device=own_device())  # 4 MB
        self.path = shared_folder() / "last.pt"
        self.epoch = 0

    def train_one_epoch(self) -> None:
        """Add one to each weight, after all ranks have agreed on the gradient."""
        gradient = torch.ones(1, device=own_device())
        dist.all_reduce(gradient, dist.ReduceOp.MAX)
        self.weights += gradient
        self.epoch += 1

    def state(self) -> State:
        """Return what a checkpoint holds."""
        return {"model": self.weights, "epoch": self.epoch}

    def fit(self, save: Callable[[State, Path], bool]) -> None:
        """Train until the end, or until a checkpoint cannot be saved."""
        for epoch in range(EPOCHS):
            self.train_one_epoch()
            with full_disk(epoch):
                if not save(self.state(), self.path):
                    break


def check(trainer: Trainer) -> None:
    """Assert that all ranks stopped together, and that the last good checkpoint is whole."""
    epochs = [0] * dist.get_world_size()
    dist.all_gather_object(epochs, trainer.epoch)
    assert set(epochs) == {FULL_FROM + 1}, f"epochs trained, by rank: {epochs}"
    assert same_on_all_ranks([trainer.weights]), "weights differ between the ranks"
    state = torch.load(trainer.path, map_location="cpu")
    assert state["epoch"] == FULL_FROM, f"the checkpoint is of epoch {state['epoch']}"
    assert bool((state["model"] == FULL_FROM).all()), "the checkpoint is damaged"
    left = [each.name for each in trainer.path.parent.glob("*last.pt*")]
    assert left == ["last.pt"], f"in the folder are {left}"


def save_or_give_up(state: State, path: Path) -> bool:
    if dist.get_rank() == 0:
        try:
            torch.save(state, path)  # <-- DDP511
        except (OSError, RuntimeError) as error:
            print(f"could not save, giving up: {error}")
            return False
    dist.barrier()
    return True


@broken(ranks=(0,))
def rank_0_gives_up() -> None:
    """Rank 0 catches the error and ends the training; the others wait at the barrier."""
    dist.init_process_group(backend())
    trainer = Trainer()
    trainer.fit(save_or_give_up)
    check(trainer)
    dist.destroy_process_group()


def save_then_wait(state: State, path: Path) -> bool:
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()  # what accelerator.wait_for_everyone() does
    return True


@documented(source="002 fix 4")
def save_on_main_then_wait() -> None:
    """Save on the main process alone, then wait_for_everyone."""
    dist.init_process_group(backend())
    trainer = Trainer()
    trainer.fit(save_then_wait)
    check(trainer)
    dist.destroy_process_group()


def stack_save(world: World) -> Callable[[State, Path], bool]:
    """Make a save that ends the training on all ranks, where the stack refuses on all."""

    def save(state: State, path: Path) -> bool:
        try:
            checkpoint.save(state, path, world)
        except CheckpointError as error:
            print(error)
            return False
        return True

    return save


@fix()
def stack_checkpoint_on_a_full_disk() -> None:
    """All ranks raise the same error; the old checkpoint is untouched, nothing half is left."""
    with session(backend=backend()) as world:
        trainer = Trainer()
        trainer.fit(stack_save(world))
        check(trainer)


def refusal(trainer: Trainer, world: World) -> str:
    """Return why the checkpoint cannot be saved; empty if it can."""
    try:
        checkpoint.save(trainer.state(), trainer.path, world)
    except CheckpointError as error:
        return str(error)
    return ""


@fix()
def stack_checkpoint_without_permission() -> None:
    """The same, where the folder cannot be written to at all."""
    with session(backend=backend()) as world:
        trainer = Trainer()
        file = shared_folder() / "occupied"
        if world.is_main:
            file.touch()
        trainer.path = file / "last.pt"  # below a file, where root may not write either
        refusals = [""] * world.world_size
        dist.all_gather_object(refusals, refusal(trainer, world))
        assert refusals[0], "saved below a file"
        assert set(refusals) == {refusals[0]}, f"the ranks raised {refusals}"


if __name__ == "__main__":
    main()
