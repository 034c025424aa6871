"""What the tests of the stack run on ranks, beside the tests whose own body does.

A training of a toy, small enough to be launched many times: a linear model with dropout (so that
the random generators matter) on 37 samples (so that no share is even).
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ddpdoctor.stack.batch import TensorBatch
from ddpdoctor.stack.config import TrainingConfig, parse
from ddpdoctor.stack.crystal import (
    TrainingResult,
    dcdft,
    load_model,
    predict_from_list,
    sharing,
    train_from_extxyz,
    train_from_list,
)
from ddpdoctor.stack.crystal.graph import GraphConfig, as_crystal, build_graph
from ddpdoctor.stack.crystal.graph import collate as collate_crystals
from ddpdoctor.stack.errors import StackError
from ddpdoctor.stack.evaluation import gather_ragged, predict, predict_ragged
from ddpdoctor.stack.process_group import Backend, session
from ddpdoctor.stack.resume import Epoch, Progress, Trained, reload_weights
from ddpdoctor.stack.samplers import exact_shard
from ddpdoctor.stack.trainer import fit
from tests.stack.killing import killed_at

N_SAMPLES = 37


@dataclass(frozen=True)
class Rows(TensorBatch):
    inputs: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)


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


@dataclass(frozen=True)
class MaskedRows(Rows):
    """Rows of which some numbers alone are to be learnt: the loss adds up those."""

    mask: torch.Tensor

    @property
    def weight(self) -> int:
        return int(self.mask.sum())


class MaskedSamples(Sequence[Any]):
    """Samples with a mask that is drawn anew in each epoch; some samples have none."""

    def __init__(self) -> None:
        self.samples = samples()
        self.epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> Any:
        generator = torch.Generator().manual_seed(1000 * self.epoch + index)
        return *self.samples[index], torch.rand((), generator=generator) < 0.3


def collate_masked(samples: Sequence[Any]) -> MaskedRows:
    rows = collate([sample[:2] for sample in samples])
    mask = torch.tensor([bool(sample[2]) for sample in samples], dtype=torch.bool)
    return MaskedRows(rows.inputs, rows.labels, mask)


def masked_loss(net: nn.Module, rows: MaskedRows) -> torch.Tensor:
    return ((net(rows) - rows.labels).square() * rows.mask).sum()


class Signaller:
    """Takes the place of the progress bar, and sends this rank a signal after so many steps."""

    def __init__(self, number: signal.Signals, after: int | None, pause: float = 0.0) -> None:
        self.number = number
        self.after = after
        self.pause = pause
        self.steps = 0

    def step(self, done: float) -> None:
        time.sleep(self.pause)
        self.steps += 1
        if self.steps == self.after:
            os.kill(os.getpid(), self.number)

    def epoch(self, record: Epoch) -> None:
        pass


def train_toy(
    output_dir: str,
    dropout: float = 0.0,
    kill_after: int | None = None,
    term_after: int | None = None,
    term_rank: int = 0,
    masked: bool = False,
    higher_is_better: bool = False,
    stop_epoch: int | None = None,
    backend: Backend = "auto",
    pause: float = 0.0,
    **options: Any,
) -> dict[str, Any]:
    """Train, `pause` seconds a step, and return all that two trainings can be compared by."""
    torch.set_default_dtype(torch.float64)
    config = parse(TrainingConfig, {"output_dir": output_dir, "n_epochs": 3, **options})
    data = samples()
    with session(backend=backend) as world:

        def second_stage(progress: Progress, trained: Trained) -> None:
            """From `stop_epoch` on: the best weights of the first stage, another decay."""
            if progress.epoch == stop_epoch:
                assert progress.best
                assert trained.average
                reload_weights(trained, config.output_dir / progress.best, world)
                trained.average.decay = 0.5
                progress.extra = {"stage": 2, "first": progress.best}

        Path(output_dir).mkdir(exist_ok=True)
        torch.manual_seed(config.random_seed)
        model = Toy(dropout)
        show = Signaller(signal.SIGKILL, kill_after, pause)
        if term_after is not None and world.rank == term_rank:
            show = Signaller(signal.SIGTERM, term_after)
        progress = fit(
            model,
            MaskedSamples() if masked else data,
            collate=collate_masked if masked else collate,
            loss_sum=masked_loss
            if masked
            else lambda net, rows: (net(rows) - rows.labels).square().sum(),
            validate=lambda net: predict(net, data, collate, 8, world).sum().item(),
            config=config,
            settings={"system": "toy", **config.decisive()},
            world=world,
            show=show,
            higher_is_better=higher_is_better,
            between_epochs=second_stage if stop_epoch is not None else None,
        )
    return {
        "weights": [p.tolist() for p in model.parameters()],
        "history": [[e.train_loss, e.metric, e.learning_rate] for e in progress.history],
        "best": progress.best,
        "best_metric": progress.best_metric,
        "extra": progress.extra,
        "generator": torch.rand(1).item(),
    }


def tiny(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a training on crystals that takes a second."""
    size = {"width": 8, "heads": 2, "layers": 1, "n_radial": 8, "cutoff": 4.0, "n_angles": 4}
    return {"n_epochs": 2, "batch_size": 8, **size, **options}


def train_crystals(
    float64: bool = False, save_kills: int | None = None, **options: Any
) -> dict[str, Any]:
    """Train on the embedded data set, and return what two trainings can be compared by."""
    if float64:
        torch.set_default_dtype(torch.float64)
    with killed_at(save_kills):
        return summary(train_from_list(*dcdft(), **tiny(options)))


def train_file(path: str, target: str, **options: Any) -> dict[str, Any]:
    return summary(train_from_extxyz(path, target, **tiny(options)))


def summary(result: TrainingResult) -> dict[str, Any]:
    return {
        "world_size": result.world_size,
        "history": [[e.train_loss, e.metric, e.learning_rate] for e in result.history],
        "test": [[p.index, *p.labels, *p.predicted] for p in result.test],
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
    dcdft()  # read while this user may still read the environment it is installed in
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
    data = [(graph, [label]) for graph, label in zip(graphs, labels, strict=True)]
    with session() as world:
        predicted = predict(model, data, collate_crystals, 16, world, 1)
    return float((predicted[:, 0] - torch.tensor(labels)).abs().mean())


def different_data(output_dir: str) -> list[str]:
    """Give each rank other labels."""
    strucs, labels = dcdft()
    labels[0] += float(os.environ["RANK"])
    try:
        train_from_list(strucs, labels, **tiny({"output_dir": output_dir}))
    except StackError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", "it went well"]


def ragged(length: int) -> list[list[Any]]:
    """Gather tables whose number of rows is 0 to 4, and those that a model makes of the toy."""
    torch.set_default_dtype(torch.float64)
    with session() as world:
        shard = exact_shard(length, world.rank, world.world_size)
        mine = [torch.full((index % 5, 2), index + 0.1) for index in shard]
        gathered = gather_ragged(mine, length, 2, world)

        def infer(net: nn.Module, rows: Rows) -> list[torch.Tensor]:
            return [net.weight[: int(label) % 4, :3] * label for label in rows.labels]

        torch.manual_seed(0)
        tables = predict_ragged(nn.Linear(5, 6), samples(), collate, infer, 3, 4, world)
    return [[table.tolist() for table in gathered], [table.tolist() for table in tables]]


def graphs_built(folder: str | None, nodes: int) -> list[Any]:
    """Build graphs as if the ranks were on so many nodes: how many here, and what came of all."""
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    os.environ["GROUP_RANK"] = str(rank * nodes // world_size)
    crystals = [as_crystal(structure) for structure in dcdft()[0][:11]]
    built = []

    def counted(crystal: Any, config: GraphConfig) -> Any:
        built.append(crystal.name)
        return build_graph(crystal, config)

    sharing.build_graph = counted  # type: ignore[attr-defined]
    with session() as world:
        place = Path(folder) if folder else None
        graphs = sharing.build_graphs(crystals, GraphConfig(cutoff=4.0), place, world)
        expected = [build_graph(crystal, GraphConfig(cutoff=4.0)) for crystal in crystals]
        for ours, theirs in zip(graphs, expected, strict=True):
            assert all(torch.equal(vars(ours)[name], vars(theirs)[name]) for name in vars(ours))
    return built


def predicted(path: str, targets: list[str]) -> list[Any]:
    """Predict the first structures of the embedded data set."""
    result = predict_from_list(path, dcdft()[0][:7], batch_size=2)
    assert result.targets == targets
    return [result.formulas, result.values.tolist()]
