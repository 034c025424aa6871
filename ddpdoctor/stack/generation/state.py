"""The whole state of an accelerate training: saved as one folder, whole or not at all."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from accelerate import Accelerator
from torch import nn

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.errors import CheckpointError, ConfigError
from ddpdoctor.stack.outcome import on_main, together
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.resume import FOLDERS, Progress, check_same, check_system, last_checkpoint

WHOLE = "custom_checkpoint_0.pkl"
"""accelerate's name for the first thing that was registered for checkpointing."""


@dataclass
class Whole:
    """What accelerate does not know of, and the weights, under keys without `module.`.

    accelerate would save those of the DDP wrapper, which another number of ranks cannot load.
    """

    settings: dict[str, Any]
    progress: Progress
    model: nn.Module
    average: ExponentialMovingAverage | None

    def state_dict(self) -> dict[str, Any]:
        """Return plain values and tensors."""
        return {
            "settings": self.settings,
            "progress": asdict(self.progress),
            "model": self.model.state_dict(),
            "average": self.average.state_dict() if self.average else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.progress = Progress.restored(state["progress"])
        self.model.load_state_dict(state["model"])
        if self.average:
            self.average.load_state_dict(state["average"])


def name_of(progress: Progress) -> str:
    """Name the folder of this moment, so that names sort as they were written."""
    return f"step_{progress.step:09d}"


def register(accelerator: Accelerator, whole: Whole) -> None:
    """Have `save_state` and `load_state` take `whole`, and leave the wrapped weights to it."""
    accelerator.register_for_checkpointing(whole)
    accelerator.register_save_state_pre_hook(lambda models, weights, folder: weights.clear())
    accelerator.register_load_state_pre_hook(lambda models, folder: models.clear())


def save(accelerator: Accelerator, whole: Whole, config: TrainingConfig, world: World) -> None:
    """Save the state of all ranks in one folder, and delete what is no longer wanted."""
    name = name_of(whole.progress)
    path = config.output_dir / name
    # Every rank writes its generators into the folder, so all must know its name.
    temporary = on_main(world, lambda: config.output_dir / f".{name}.{uuid4().hex}.tmp")
    with together(world):
        try:
            accelerator.save_state(str(temporary))
        except (OSError, RuntimeError) as error:
            raise CheckpointError(f"cannot write {path}: {error}") from error
    # The one place that needs all: the folder gets its name when every rank has written its part.
    # together() has seen to that, and that all know of a failure, which wait_for_everyone would
    # not tell.
    with together(world):
        if world.is_main:
            _sync(temporary)
            temporary.replace(path)
            _prune(config, whole.progress.best)


def restore(accelerator: Accelerator, whole: Whole, config: TrainingConfig, world: World) -> None:
    """Put back the last state of the output folder, if there is one. A collective.

    Raises ConfigError on all ranks where it belongs to another training, and where it is there
    though `resume` did not ask for it.
    """
    path = on_main(world, lambda: _last(config))
    if path is None:
        return
    state = checkpoint.load(path / WHOLE, world)
    check_system(state, whole.settings["system"], path)
    check_same(state["settings"], whole.settings, path)
    with together(world):
        accelerator.load_state(str(path))


def _last(config: TrainingConfig) -> Path | None:
    last = last_checkpoint(config)
    if last and not (last / WHOLE).is_file():
        raise ConfigError(f"{last} is no checkpoint of a training by accelerate")
    return last


def _prune(config: TrainingConfig, best: str | None) -> None:
    folders = sorted(each for each in config.output_dir.glob(FOLDERS) if each.is_dir())
    surplus = folders[: max(len(folders) - config.keep_checkpoints, 0)]
    for folder in (*surplus, *config.output_dir.glob(f".{FOLDERS}.*.tmp")):
        if folder.name != best:
            shutil.rmtree(folder)


def _sync(folder: Path) -> None:
    # Before the rename: otherwise a power cut may keep the new name and lose what is in it.
    for path in (*folder.iterdir(), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
