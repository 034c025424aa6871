"""The two stages of a training: strong augmentation, then the best of it refined.

Stage 1 lasts until `stop_epoch`. Stage 2 begins with its best weights, and an average that moves at
another pace. An epoch of stage 2 that is no better than those before it is undone in the same way:
the training goes back to the best weights of stage 1, and the average gets a little faster.

All of it is decided on the metrics in `progress`, which are the same on all ranks. A metric of a
rank's own would send the ranks different ways at the first reload, which is collective.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import CheckpointError
from ddpdoctor.stack.outcome import on_main, together
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.resume import BetweenEpochs, Progress, Trained, name_of, reload_weights
from ddpdoctor.stack.verification import verify_checkpoint

log = logging.getLogger(__name__)

BEST = {1: "best_stg1.pth", 2: "best_stg2.pth"}
"""The best weights of each stage."""
LAST = "last.pth"
"""Where the training stood at the end of its last epoch, in either stage."""
DECAY_STEP = 1e-4
"""By how much the decay of the average falls with each refresh."""


def two_stages(
    folder: Path, stop_epoch: int, n_epochs: int, ema_restart_decay: float, world: World
) -> BetweenEpochs:
    """Return the hook for `fit` that names the checkpoints of each stage, and changes stages."""

    def between_epochs(progress: Progress, trained: Trained) -> None:
        metrics = [epoch.metric for epoch in progress.history]
        improved = is_best_of_its_stage(metrics, stop_epoch)
        if metrics:
            stage = 1 if len(metrics) <= stop_epoch else 2
            written = folder / name_of(progress)
            with together(world):
                if world.is_main:
                    give_name(written, folder / LAST)
                    if improved:
                        give_name(written, folder / BEST[stage])
        if not stop_epoch <= progress.epoch < n_epochs:
            return
        switching = progress.epoch == stop_epoch
        if switching or not improved:
            load_resume_state(folder / BEST[1], trained, world)
            if trained.average is not None:
                # From the beginning, not from what it was: a training that is resumed here does
                # this a second time.
                fallen = refreshes(metrics, stop_epoch) * DECAY_STEP
                trained.average.decay = max(0.0, ema_restart_decay - fallen)
                if world.is_main:
                    decay = trained.average.decay
                    log.info("epoch %d: average restarted, decay %g", progress.epoch + 1, decay)

    return between_epochs


def is_best_of_its_stage(metrics: Sequence[float], stop_epoch: int) -> bool:
    """Whether the last of these metrics, one per epoch, is higher than those of its stage."""
    if not metrics:
        return False
    before = metrics[:-1] if len(metrics) <= stop_epoch else metrics[stop_epoch:-1]
    return all(metrics[-1] > metric for metric in before)


def refreshes(metrics: Sequence[float], stop_epoch: int) -> int:
    """Return how many epochs of stage 2 were no better than those before them."""
    ends = range(stop_epoch + 1, len(metrics) + 1)
    return sum(not is_best_of_its_stage(metrics[:end], stop_epoch) for end in ends)


def load_resume_state(path: Path, trained: Trained, world: World) -> None:
    """Go back to the weights and the average of a checkpoint. A collective.

    Rank 0 looks first whether the file is whole, and all ranks hear what it found, so that they
    load together or raise together; a barrier would leave them waiting for a rank that raises.
    Epoch, optimizer and schedule go on: to set those back, too, would have the training count
    epochs that it is not in.
    """
    on_main(world, lambda: verify_checkpoint(path))
    reload_weights(trained, path, world)


def give_name(written: Path, name: Path) -> None:
    """Let `name` be the checkpoint `written`, in place of what had that name. For rank 0 alone.

    A second name for the same file: nothing is copied, nobody finds half of it, and it stays when
    the first name is deleted. Raises CheckpointError where the disk refuses.
    """
    temporary = name.with_name(f".{name.name}.{uuid4().hex}.tmp")
    try:
        temporary.hardlink_to(written)
        temporary.replace(name)
    except OSError:
        _copy(written, name)
    finally:
        # Where both names were one file already, rename(2) does nothing and leaves this one.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _copy(written: Path, name: Path) -> None:
    # For file systems that give a file one name only.
    try:
        source = written.open("rb")
    except OSError as error:
        raise CheckpointError(f"cannot read {written}: {error.strerror}") from error
    with source, checkpoint.replacing(name) as file:
        shutil.copyfileobj(source, file)
