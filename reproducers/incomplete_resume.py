"""DDP509 incomplete-resume: a resumed training is not the one that was stopped.

torchrun --nproc-per-node=4 reproducers/incomplete_resume.py broken
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

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
from ddpdoctor.stack.config import TrainingConfig
from ddpdoctor.stack.ema import ExponentialMovingAverage
from ddpdoctor.stack.outcome import on_main
from ddpdoctor.stack.process_group import World, session
from ddpdoctor.stack.resume import Epoch, name_of
from ddpdoctor.stack.rng import generator_states, restore_generators, seed_generators
from ddpdoctor.stack.trainer import fit

SAMPLES, WIDTH, EPOCHS, STOPPED_AFTER, SEED = 24, 8, 4, 2, 42
PARTS = {"model", "optimizer", "scheduler", "ema", "epoch", "generators"}


def make_data() -> Tensor:
    return torch.randn(SAMPLES, WIDTH, generator=torch.Generator().manual_seed(1))


class Trainer:
    """All that a training carries along: the model, five other states, and noise in its steps."""

    def __init__(self) -> None:
        torch.manual_seed(SEED)
        # One parameter: DDP's buckets, which are made anew at a resume, cannot round differently.
        net = nn.Sequential(nn.Dropout(0.5), nn.Linear(WIDTH, 1, bias=False))
        self.model = DistributedDataParallel(net.to(own_device()))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, EPOCHS)
        self.ema = ExponentialMovingAverage(self.model, decay=0.9)
        self.first_epoch = 0
        seed_generators(SEED, dist.get_rank())

    def fit(self, epochs: int = EPOCHS) -> None:
        """Train from the first epoch on."""
        data: Dataset[Any] = TensorDataset(make_data())
        sampler: DistributedSampler[Any] = DistributedSampler(data)
        loader = DataLoader(data, 3, sampler=sampler)
        for epoch in range(self.first_epoch, epochs):
            sampler.set_epoch(epoch)
            for (inputs,) in loader:
                self.optimizer.zero_grad()
                wrong = self.model(inputs.to(own_device())) - inputs.sum(1, keepdim=True)
                wrong.square().mean().backward()
                self.optimizer.step()
                self.ema.update(self.model)
            self.scheduler.step()

    def result(self) -> Tensor:
        """Return the weights and their average."""
        parameters = [*self.model.parameters(), *self.ema.module.parameters()]
        return torch.cat([each.detach().flatten().cpu() for each in parameters])


def save(trainer: Trainer, path: Path) -> None:
    """Save everything, with the generators of all ranks, after the epoch at which it is stopped."""
    generators = [generator_states()] * dist.get_world_size()
    dist.all_gather_object(generators, generator_states())
    state = {
        "model": trainer.model.module.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "scheduler": trainer.scheduler.state_dict(),
        "ema": trainer.ema.state_dict(),
        "epoch": STOPPED_AFTER,
        "generators": generators,
    }
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()
    torch.save(generator_states(), path.with_name(f"rng_state_{dist.get_rank()}.pth"))


def restore(trainer: Trainer, path: Path, parts: set[str]) -> None:
    """Restore some parts of a checkpoint."""
    state = torch.load(path, map_location="cpu")
    for name in parts & {"optimizer", "scheduler", "ema"}:
        getattr(trainer, name).load_state_dict(state[name])
    trainer.model.module.load_state_dict(state["model"])
    if "epoch" in parts:
        trainer.first_epoch = state["epoch"]
    if "generators" in parts:
        restore_generators(state["generators"][dist.get_rank()])


Resume = Callable[[Trainer, Path], None]


class Stopped:
    """A training that was stopped and saved, and the same training that was not stopped."""

    def __init__(self) -> None:
        self.path = shared_folder() / "last.pt"
        stopped, through = Trainer(), Trainer()
        stopped.fit(STOPPED_AFTER)
        save(stopped, self.path)
        seed_generators(SEED, dist.get_rank())
        through.fit()
        self.expected = through.result()

    def off_by(self, resume: Resume) -> float:
        """Resume and go on; return how far that ends from the one that never stopped."""
        resumed = Trainer()
        resume(resumed, self.path)
        resumed.fit()
        off = (resumed.result() - self.expected).abs().max().to(own_device())
        dist.all_reduce(off, dist.ReduceOp.MAX)
        return off.item()


def check(resume: Resume) -> None:
    """Assert that the resumed training ends where the other does, to the bit, on all ranks."""
    off = Stopped().off_by(resume)
    assert off == 0, f"off by {off:.2g} from a training that never stopped"


def resume_model_and_optimizer(trainer: Trainer, path: Path) -> None:
    state = torch.load(path, map_location="cpu")  # <-- DDP509
    trainer.model.module.load_state_dict(state["model"])
    trainer.optimizer.load_state_dict(state["optimizer"])


@broken()
def weights_and_optimizer() -> None:
    """Restore the weights and the optimizer."""
    dist.init_process_group(backend())
    stopped = Stopped()
    without = []
    for part in sorted(PARTS - {"model"}):
        off = stopped.off_by(partial(restore, parts=PARTS - {part}))
        without.append(f"{part} {off:.2g}")
    whole = stopped.off_by(partial(restore, parts=PARTS))
    measured(f"off by {whole:.2g} if all is restored; without {', '.join(without)}")
    off = stopped.off_by(resume_model_and_optimizer)
    assert off == 0, f"off by {off:.2g} from a training that never stopped"
    dist.destroy_process_group()


@documented(source="PyTorch tutorial, Saving and loading a general checkpoint")
def general_checkpoint() -> None:
    """Restore epoch, model and optimizer."""
    dist.init_process_group(backend())
    check(partial(restore, parts={"model", "optimizer", "epoch"}))
    dist.destroy_process_group()


@documented(source="pytorch/examples, imagenet/main.py")
def imagenet_example() -> None:
    """Restore epoch, model, optimizer and scheduler."""
    dist.init_process_group(backend())
    check(partial(restore, parts={"model", "optimizer", "epoch", "scheduler"}))
    dist.destroy_process_group()


@documented(source="001 best practices: always seed", promises="an aid")
def seed_again() -> None:
    """Restore all but the generators, which are seeded as at the start."""
    dist.init_process_group(backend())
    check(partial(restore, parts=PARTS - {"generators"}))
    dist.destroy_process_group()


def restore_generators_of_rank_0(trainer: Trainer, path: Path) -> None:
    restore(trainer, path, PARTS)
    restore_generators(torch.load(path, map_location="cpu")["generators"][0])


@documented(source="epfml/llm-baselines#13")
def generators_of_the_rank_that_saves() -> None:
    """Restore all, with the generators of rank 0 on every rank: those in its checkpoint."""
    dist.init_process_group(backend())
    check(restore_generators_of_rank_0)
    dist.destroy_process_group()


def restore_generators_of_each_rank(trainer: Trainer, path: Path) -> None:
    restore(trainer, path, PARTS - {"generators"})
    own = path.with_name(f"rng_state_{dist.get_rank()}.pth")
    restore_generators(torch.load(own, map_location="cpu"))


@documented(source="transformers, Trainer: rng_state_RANK.pth")
def generators_in_a_file_of_each_rank() -> None:
    """Restore all, with a file of generators for each rank."""
    dist.init_process_group(backend())
    check(restore_generators_of_each_rank)
    dist.destroy_process_group()


def resume_with_arguments(trainer: Trainer, path: Path) -> None:
    if dist.get_rank() == 0:
        state = torch.load(path, map_location="cpu")
        torch.save(state | {"args": Namespace(lr=0.1)}, path)
    dist.barrier()
    restore(trainer, path, PARTS)


@documented(source="REPA-E and facebookresearch/DiT, train.py: args in the checkpoint")
def arguments_in_the_checkpoint() -> None:
    """Save the argparse Namespace, too, and load as before torch 2.6."""
    dist.init_process_group(backend())
    check(resume_with_arguments)
    dist.destroy_process_group()


class Rows(list[Tensor]):
    """A batch for the stack's trainer."""

    @property
    def weight(self) -> int:
        """How many losses are added up."""
        return len(self)

    def to(self, device: torch.device) -> Rows:
        """Return a copy on `device`."""
        return Rows(row.to(device) for row in self)


def loss_sum(model: nn.Module, rows: Rows) -> Tensor:
    """Add up the losses of a batch, which may be empty."""
    inputs = torch.stack(list(rows)) if rows else torch.zeros(0, WIDTH, device=own_device())
    wrong: Tensor = model(inputs) - inputs.sum(1, keepdim=True)
    return wrong.square().sum()


class Stop(Exception):
    """The training is stopped: out of time."""


class Clock:
    """Stops a training after so many steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def step(self, done: float) -> None:
        """After each optimizer step."""
        self.steps -= 1
        if self.steps == 0:
            raise Stop

    def epoch(self, record: Epoch) -> None:
        """After each epoch."""


def train(folder: str, world: World, stop_after: int = 0, *, resume: bool = False) -> Any:
    """Train by the stack in the middle of an epoch, and return its last checkpoint, if it ends."""
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))
    output = shared_folder() / folder
    on_main(world, lambda: output.mkdir(exist_ok=True))
    config = TrainingConfig(
        output_dir=output,
        batch_size=2,
        n_epochs=2,
        checkpoint_every=1,
        keep_checkpoints=1,
        resume=resume,
    )
    progress = fit(
        model,
        list(make_data()),
        collate=Rows,
        loss_sum=loss_sum,
        validate=lambda net: float(sum(each.detach().square().sum() for each in net.parameters())),
        config=config,
        settings={},
        world=world,
        show=Clock(stop_after),
    )
    return checkpoint.load(output / name_of(progress), world)


def flat(state: Any) -> list[Any]:
    """Return the numbers of a state, of its tensors with all their bits."""
    if isinstance(state, Tensor):
        return [state.numpy().tobytes()]
    if isinstance(state, dict):
        state = state.values()
    elif not isinstance(state, list | tuple):
        return [state]
    return [number for each in state for number in flat(each)]


@fix()
def stack_resume() -> None:
    """Stop the stack's trainer in the middle of an epoch, and let it resume."""
    with session(backend=backend()) as world:
        through = train("through", world)
        steps = SAMPLES // 2 // world.world_size  # an epoch
        with suppress(Stop):
            train("stopped", world, stop_after=steps + steps // 2)
        resumed = train("stopped", world, resume=True)
        for part in ("model", "average", "optimizer", "ranks"):
            assert flat(resumed[part]) == flat(through[part]), f"{part} differs"


if __name__ == "__main__":
    main()
