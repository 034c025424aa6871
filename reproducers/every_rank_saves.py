"""DDP502 every-rank-saves: all ranks write one checkpoint file at the same time.

torchrun --nproc-per-node=4 reproducers/every_rank_saves.py broken
"""

from __future__ import annotations

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
    measured,
    own_device,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.process_group import session

EPOCHS = 3
TENSORS, SHAPE = 4, (512, 512)  # 4 MB

State = dict[str, Any]


def make_state(epoch: int) -> State:
    """Make a checkpoint of what differs by rank in spite of DDP, such as BatchNorm's statistics."""
    number = float(10 * epoch + dist.get_rank())
    return {
        "epoch": epoch,
        "model": {f"running_mean{i}": torch.full(SHAPE, number) for i in range(TENSORS)},
    }


def writers_in(path: Path, epoch: int) -> set[int]:
    """Return the ranks whose numbers are in the file; none if it cannot be read."""
    try:
        state = torch.load(path, map_location="cpu")
    except (RuntimeError, EOFError, OSError):
        return set()
    numbers = [number for tensor in state["model"].values() for number in tensor.unique().tolist()]
    return {int(number) - 10 * epoch for number in numbers}


def train(save: Callable[[State, Path], None]) -> None:
    """Save after each epoch, and look at the file when all ranks are done with it."""
    path = shared_folder() / "last.pt"
    damaged: list[str] = []
    for epoch in range(EPOCHS):
        state = make_state(epoch)
        # The last gradients of the epoch: all ranks leave it together.
        dist.all_reduce(torch.ones(1, device=own_device()))
        save(state, path)
        dist.barrier()
        if dist.get_rank() == 0 and (ranks := writers_in(path, epoch)) != {0}:
            told = f"is of ranks {sorted(ranks)}" if ranks else "cannot be read"
            damaged.append(f"epoch {epoch} {told}")
    if damaged:
        measured(f"{len(damaged)} of {EPOCHS} files are not rank 0's: {', '.join(damaged)}")
    count = torch.tensor(len(damaged), device=own_device())
    dist.broadcast(count, src=0)
    assert count == 0, f"{count} of {EPOCHS} files are not rank 0's"


@broken(launches=2)
def every_rank_saves() -> None:
    """Every rank calls torch.save with the same path."""
    dist.init_process_group(backend())
    train(lambda state, path: torch.save(state, path))  # <-- DDP502
    dist.destroy_process_group()


def save_on_rank_0(state: State, path: Path) -> None:
    if dist.get_rank() == 0:
        torch.save(state, path)


@documented(source="001 checkpointing, 003 note 1")
def only_rank_0_saves() -> None:
    """Save on rank 0 alone."""
    dist.init_process_group(backend())
    train(save_on_rank_0)
    dist.destroy_process_group()


def save_on_main_then_wait(state: State, path: Path) -> None:
    save_on_rank_0(state, path)
    dist.barrier()  # what accelerator.wait_for_everyone() does


@documented(source="002 fix 4")
def main_process_saves_then_all_wait() -> None:
    """Save on the main process alone, then wait_for_everyone."""
    dist.init_process_group(backend())
    train(save_on_main_then_wait)
    dist.destroy_process_group()


@fix()
def stack_checkpoint() -> None:
    """Rank 0 saves, by rename; every rank learns the outcome."""
    with session(backend=backend()) as world:
        train(lambda state, path: checkpoint.save(state, path, world))


if __name__ == "__main__":
    main()
