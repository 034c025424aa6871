"""What the tests of the stack run on ranks, beside the tests whose own body does.

A training of a toy, small enough to be launched many times: a linear model with dropout (so that
the random generators matter) on 37 samples (so that no share is even).
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ddpdoctor.stack.config import TrainingConfig, parse
from ddpdoctor.stack.crystal import (
    TrainingResult,
    dcdft,
    load_model,
    train_from_extxyz,
    train_from_list,
)
from ddpdoctor.stack.crystal.graph import GraphConfig, as_crystal, build_graph
from ddpdoctor.stack.crystal.graph import collate as collate_crystals
from ddpdoctor.stack.errors import StackError
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.process_group import session
from ddpdoctor.stack.resume import Epoch
from ddpdoctor.stack.trainer import fit

N_SAMPLES = 37


@dataclass
class Rows:
    inputs: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Rows:
        return Rows(self.inputs.to(device), self.labels.to(device))


def collate(samples: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Rows:
    if not samples:
        return Rows(torch.zeros(0, 5), torch.zeros(0))
    inputs, labels = zip(*samples, strict=True)
    return Rows(torch.stack(inputs), torch.stack(labels))


class Toy(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(5, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 16), nn.Linear(16, 1)
        )

    def forward(self, rows: Rows) -> torch.Tensor:
        return self.layers(rows.inputs).squeeze(-1)


def samples() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(N_SAMPLES, 5, generator=generator)
    return list(zip(inputs, inputs.square().sum(dim=1), strict=True))


class Killer:
    """Takes the place of the progress bar, and SIGKILLs this rank after so many steps."""

    def __init__(self, after: int | None) -> None:
        self.after = after
        self.steps = 0

    def step(self, done: float) -> None:
        self.steps += 1
        if self.steps == self.after:
            os.kill(os.getpid(), signal.SIGKILL)

    def epoch(self, record: Epoch) -> None:
        pass


def train_toy(
    output_dir: str, dropout: float = 0.0, kill_after: int | None = None, **options: Any
) -> dict[str, Any]:
    """Train and return all that two trainings can be compared by."""
    torch.set_default_dtype(torch.float64)
    config = parse(TrainingConfig, {"output_dir": output_dir, "n_epochs": 3, **options})
    data = samples()
    with session() as world:
        Path(output_dir).mkdir(exist_ok=True)
        torch.manual_seed(config.random_seed)
        model = Toy(dropout)
        progress = fit(
            model,
            data,
            collate=collate,
            loss_sum=lambda net, rows: (net(rows) - rows.labels).square().sum(),
            validate=lambda net: predict(net, data, collate, 8, world).sum().item(),
            config=config,
            settings=config.decisive(),
            world=world,
            show=Killer(kill_after),
        )
    return {
        "weights": [p.tolist() for p in model.parameters()],
        "history": [[e.train_loss, e.metric, e.learning_rate] for e in progress.history],
        "best": progress.best,
        "generator": torch.rand(1).item(),
    }


def tiny(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a training on crystals that takes a second."""
    size = {"width": 8, "heads": 2, "layers": 1, "n_radial": 8, "cutoff": 4.0, "n_angles": 4}
    return {"n_epochs": 2, "batch_size": 8, **size, **options}


def train_crystals(float64: bool = False, **options: Any) -> dict[str, Any]:
    """Train on the embedded data set, and return what two trainings can be compared by."""
    if float64:
        torch.set_default_dtype(torch.float64)
    return summary(train_from_list(*dcdft(), **tiny(options)))


def train_file(path: str, target: str, **options: Any) -> dict[str, Any]:
    return summary(train_from_extxyz(path, target, **tiny(options)))


def summary(result: TrainingResult) -> dict[str, Any]:
    return {
        "world_size": result.world_size,
        "history": [[e.train_loss, e.metric, e.learning_rate] for e in result.history],
        "test": [[p.index, p.label, p.predicted] for p in result.test],
        "test_mae": result.test_mae,
        "validation_mae": result.validation_mae,
        "weights": [p.tolist() for p in load_model(result.checkpoint).parameters()],
        "checkpoint": str(result.checkpoint),
    }


def error_of(call: str, **kwargs: Any) -> list[str]:
    """Call a function of this file that is to be refused, and return the error's type and text."""
    try:
        globals()[call](**kwargs)
    except StackError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", "it went well"]


def locked(output_dir: str) -> list[str]:
    """Train into a folder that this user may not write to."""
    with session():  # joined and left by the owner of the folder where the ranks meet
        as_root = os.geteuid() == 0
        if as_root:  # who may write everywhere
            os.seteuid(65534)
        error = error_of("train_crystals", output_dir=output_dir)
        if as_root:
            os.seteuid(0)
    return error


def limited(output_dir: str, limit: int) -> list[str]:
    """Train on a disk that takes files of `limit` bytes at most."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return error_of("train_crystals", output_dir=output_dir)


def metric_of(path: str) -> float:
    """Evaluate one set of weights on all of the embedded data set, in float64."""
    torch.set_default_dtype(torch.float64)
    model = load_model(path)
    strucs, labels = dcdft()
    graphs = [build_graph(as_crystal(s), GraphConfig(cutoff=4.0)) for s in strucs]
    data = list(zip(graphs, labels, strict=True))
    with session() as world:
        predicted = predict(model, data, collate_crystals, 16, world)
    return float((predicted - torch.tensor(labels)).abs().mean())


def different_data(output_dir: str) -> list[str]:
    """Give each rank other labels."""
    strucs, labels = dcdft()
    labels[0] += float(os.environ["RANK"])
    try:
        train_from_list(strucs, labels, **tiny({"output_dir": output_dir}))
    except StackError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", "it went well"]
