"""What a checkpoint holds, so that a resumed training equals one that never stopped."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.errors import CheckpointError, ConfigError
from ddpdoctor.stack.outcome import on_main, together
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.rng import generator_states, restore_generators

FOLDERS = f"step_{'[0-9]' * 9}"
"""Checkpoints of a training by accelerate."""
FILES = f"{FOLDERS}.pt"
"""What `name_of` names, and nothing else: people put files and folders of their own beside it."""


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to. A repetition may change nothing but the seconds."""

    epoch: int
    train_loss: float
    metric: float
    learning_rate: float
    seconds: float
    phases: dict[str, float]
    """Of these seconds, rank 0's for data, forward, backward and optimizer."""


@dataclass
class Progress:
    """Where a training stands: with the tensors, all that a resumed run must know."""

    epoch: int = 0
    consumed: int = 0
    """Samples of this epoch that all ranks together have had."""
    step: int = 0
    """Optimizer steps so far."""
    loss: float = 0.0
    """Sum of the losses in this epoch: this rank's in `fit`, all ranks' with accelerate."""
    weight: float = 0.0
    """What the losses of all ranks in this epoch are to be divided by."""
    history: list[Epoch] = field(default_factory=list)
    best: str | None = None
    """Name of the checkpoint with the best metric."""
    best_metric: float = math.nan
    extra: dict[str, Any] = field(default_factory=dict)
    """What a hook between epochs wants to remember, in plain values: a stage, a second best."""

    @property
    def best_epoch(self) -> int:
        """The first epoch with the best metric."""
        return next(each.epoch for each in self.history if each.metric == self.best_metric)

    def end_epoch(self, record: Epoch, name: str, *, higher_is_better: bool = False) -> None:
        """Note what an epoch came to, whose checkpoint will be `name`, and go on to the next."""
        self.history.append(record)
        self.epoch, self.consumed = self.epoch + 1, 0
        self.loss = self.weight = 0.0
        sign = -1 if higher_is_better else 1
        if self.best is None or sign * record.metric < sign * self.best_metric:
            self.best, self.best_metric = name, record.metric

    @classmethod
    def restored(cls, told: dict[str, Any]) -> Progress:
        """Return what `asdict` was given."""
        return cls(**{**told, "history": [Epoch(**epoch) for epoch in told["history"]]})


@dataclass(frozen=True)
class Trained:
    """Everything with a state that training changes. The model is the bare one."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    average: ExponentialMovingAverage | None


BetweenEpochs = Callable[[Progress, Trained], None]


def name_of(progress: Progress) -> str:
    """Name the checkpoint of this moment, so that names sort as they were written."""
    return f"step_{progress.step:09d}.pt"


def keep(
    trained: Trained,
    progress: Progress,
    settings: dict[str, Any],
    config: TrainingConfig,
    world: World,
) -> None:
    """Save a checkpoint and delete those that are no longer wanted. A collective."""
    # Per rank: the generators, which differ on purpose, and the part of the loss.
    ranks: list[Any] = [None] * world.world_size
    mine = {"generators": generator_states(), "loss": progress.loss}
    if world.world_size == 1:
        ranks[0] = mine
    else:
        dist.all_gather_object(ranks, mine)
    state = {
        "settings": settings,
        "progress": asdict(progress),
        "ranks": ranks,
        "model": trained.model.state_dict(),
        "optimizer": trained.optimizer.state_dict(),
        "scaler": trained.scaler.state_dict(),
        "average": trained.average.state_dict() if trained.average else None,
    }
    folder = config.output_dir
    checkpoint.save(state, folder / name_of(progress), world)
    with together(world):
        if world.is_main:
            best = folder / progress.best if progress.best else None
            checkpoint.prune(folder, config.keep_checkpoints, best, FILES)


def restore(
    trained: Trained, settings: dict[str, Any], config: TrainingConfig, world: World
) -> Progress:
    """Put back the last checkpoint of the output folder, if there is one. A collective.

    Raises ConfigError on all ranks where the checkpoint belongs to a training with other settings
    or data, and where one is there that `resume` did not ask for.
    """
    # Rank 0 looks for all: another host may see a shared folder as it was a moment ago, and ranks
    # that start from different files never meet again.
    path = on_main(world, lambda: _last(config))
    if path is None:
        return Progress()
    state = checkpoint.load(path, world)
    check_system(state, settings.get("system"), path)
    check_same(state["settings"], settings, path)
    trained.model.load_state_dict(state["model"])
    trained.optimizer.load_state_dict(state["optimizer"])
    trained.scaler.load_state_dict(state["scaler"])
    if trained.average:
        trained.average.load_state_dict(state["average"])

    progress = Progress.restored(state["progress"])
    ranks = state["ranks"]
    if len(ranks) == world.world_size:
        restore_generators(ranks[world.rank]["generators"])
        progress.loss = ranks[world.rank]["loss"]
    else:
        # Another number of ranks has no generators to take over: this one keeps those that it was
        # seeded with. The losses so far only need adding up once.
        progress.loss = sum(rank["loss"] for rank in ranks) if world.is_main else 0.0
    return progress


def reload_weights(trained: Trained, path: Path, world: World) -> None:
    """Put back the weights and the average of a checkpoint, and nothing else. A collective.

    Optimizer, schedule, progress and generators go on as they are, and so does the decay of the
    average: who restarts it with another one sets `trained.average.decay`.
    """
    state = checkpoint.load(path, world)
    trained.model.load_state_dict(state["model"])
    if trained.average:
        trained.average.module.load_state_dict(best_weights(state))


def check_system(state: dict[str, Any], system: str | None, path: Path) -> None:
    """Raise ConfigError unless a loaded checkpoint is one of a training of `system`."""
    settings = state.get("settings")
    if not isinstance(settings, dict):
        raise ConfigError(f"{path} is no checkpoint of a training by this stack")
    if settings.get("system") != system:
        raise ConfigError(f"{path} belongs to a {settings.get('system')} training, not {system}")


def best_checkpoint(path: Path, world: World) -> Path:
    """Return `path`, or where it is an output folder the best checkpoint in it. A collective.

    Raises CheckpointError where there is none.
    """
    last = on_main(world, lambda: _last_of(path))
    best = checkpoint.load(last, world)["progress"]["best"] if last != path else None
    return path / best if best else last


def best_weights(state: dict[str, Any]) -> dict[str, Any]:
    """Return the weights in a loaded checkpoint that were evaluated: averaged, if any were."""
    weights: dict[str, Any] = state["average"]["module"] if state["average"] else state["model"]
    return weights


def _last_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    checkpoints = sorted(path.glob(FILES))
    if not checkpoints:
        raise CheckpointError(f"{path} holds no checkpoint")
    return checkpoints[-1]


def last_checkpoint(config: TrainingConfig) -> Path | None:
    """Return the last checkpoint in the output folder, of whatever trainer. For rank 0 alone.

    Raises ConfigError where one is there that `resume` did not ask for.
    """
    checkpoints = sorted((*config.output_dir.glob(FILES), *config.output_dir.glob(FOLDERS)))
    if checkpoints and not config.resume:
        raise ConfigError(
            f"{config.output_dir} holds the checkpoints of a training: "
            "go on with it by the option resume, or choose another output_dir"
        )
    return checkpoints[-1] if checkpoints else None


def _last(config: TrainingConfig) -> Path | None:
    last = last_checkpoint(config)
    if last and last.is_dir():
        raise ConfigError(f"{last} is a checkpoint of a training by accelerate, not of this one")
    return last


def check_same(saved: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    """Raise ConfigError, which names what differs, unless two trainings' settings are the same."""
    names = sorted(saved.keys() | wanted.keys())
    differing = [name for name in names if saved.get(name) != wanted.get(name)]
    if differing:
        changes = ", ".join(f"{n} was {saved.get(n)}, is {wanted.get(n)}" for n in differing)
        raise ConfigError(f"cannot resume from {path}: {changes}")
