"""Train on crystals: from a list of structures, or from an extended XYZ file.

    results = train_from_list(strucs, labels, n_epochs=50, output_dir="./output")

The same script runs in a plain process and under `torchrun --nproc-per-node=4`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.config import TrainingConfig, parse
from ddpdoctor.stack.crystal.dataset import (
    Split,
    checked,
    digest,
    read_extxyz,
    split_by_formula,
)
from ddpdoctor.stack.crystal.graph import Batch, Crystal, Floats, Graph, GraphConfig, collate
from ddpdoctor.stack.crystal.model import CrystalTransformer, ModelConfig
from ddpdoctor.stack.crystal.results import Prediction, Target, TrainingResult
from ddpdoctor.stack.crystal.sharing import build_graphs
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.preparation import prepare_folder, require_equal
from ddpdoctor.stack.process_group import Backend, World, session
from ddpdoctor.stack.progress import progress_bar
from ddpdoctor.stack.resume import best_weights
from ddpdoctor.stack.trainer import fit

log = logging.getLogger(__name__)
Samples = list[tuple[Graph, Floats]]
SYSTEM = "crystal"


class CrystalConfig(TrainingConfig, GraphConfig, ModelConfig):
    """All options of a training on crystals."""

    cache_graphs: bool = False
    """Keep the graphs in output_dir, for later trainings on the same structures."""
    log10: bool = False
    """Train on the log10 of the labels."""


def train_from_list(
    strucs: Sequence[Any],
    labels: Sequence[float] | Sequence[Sequence[float]],
    *,
    distributed: bool | None = None,
    backend: Backend = "auto",
    **options: Any,
) -> TrainingResult:
    """Train on structures (pymatgen Structure or ase Atoms) with one label each, or several.

    `options` are the fields of CrystalConfig, such as batch_size (per rank), n_epochs,
    learning_rate, random_seed, num_workers, cache_graphs, use_lattice, use_angle, use_amp,
    accumulation_steps, ema_decay, resume, keep_checkpoints and output_dir. `distributed` and
    `backend` are those of `process_group.session`: left out, the launcher decides.

    Every rank must pass the same structures. Returns the result on every rank; rank 0 also writes
    it to output_dir. Raises a StackError, the same one on all ranks, for anything that the caller
    can cure.
    """
    config = parse(CrystalConfig, options)
    with session(distributed=distributed, backend=backend) as world:
        return _train(strucs, labels, None, config, world)


def train_from_extxyz(
    extxyz_file: str | Path,
    target_property: str | Sequence[str],
    *,
    distributed: bool | None = None,
    backend: Backend = "auto",
    **options: Any,
) -> TrainingResult:
    """Train on the structures of an extended XYZ file, with one or several of their properties.

    Every rank reads the file. Everything else is as in `train_from_list`.
    """
    config = parse(CrystalConfig, options)
    targets = [target_property] if isinstance(target_property, str) else list(target_property)
    with session(distributed=distributed, backend=backend) as world:
        with together(world):
            strucs, labels = read_extxyz(extxyz_file, targets)
        return _train(strucs, labels, targets, config, world)


@dataclass(frozen=True)
class Scale:
    """Where the labels of a training set lie, one number per target."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, labels: Floats) -> Scale:
        """Take it from labels (structures x targets); what does not vary keeps its own units."""
        varies = np.ptp(labels, axis=0) > 0
        return cls(labels.mean(axis=0), np.where(varies, labels.std(axis=0), 1.0))

    def overall(self, errors: Floats) -> float:
        """Return the mean of errors (one per target): of several in deviations, one in its units.

        So each of several targets counts the same, whatever its units.
        """
        return float((errors / self.deviation).mean() if len(errors) > 1 else errors[0])


@dataclass(frozen=True)
class Data:
    """What is trained on, the same on every rank."""

    crystals: list[Crystal]
    values: Floats
    """Labels: structures x targets."""
    targets: list[str]
    split: Split
    digest: str


def _gathered(
    strucs: Sequence[Any],
    labels: Sequence[Any],
    targets: list[str] | None,
    config: CrystalConfig,
    world: World,
) -> Data:
    with together(world):
        for module in ("ase", "pymatgen.core.periodic_table", "vesin", "matplotlib.figure"):
            need(module, "crystal")
        crystals, values = checked(strucs, labels, log10=config.log10)
        split = split_by_formula(crystals, config.random_seed)
        data = digest(crystals, values.tobytes())
    require_equal(data, "structures or labels", world)
    n_targets = values.shape[1]
    if targets is None:
        targets = ["label"] if n_targets == 1 else [f"label {i}" for i in range(n_targets)]
    if world.is_main:
        sizes = len(split.train), len(split.validation), len(split.test)
        log.info("train %d, validation %d, test %d structures", *sizes)
    return Data(crystals, values, targets, split, data)


def _train(
    strucs: Sequence[Any],
    labels: Sequence[Any],
    targets: list[str] | None,
    config: CrystalConfig,
    world: World,
) -> TrainingResult:
    started = time.perf_counter()
    prepare_folder(config.output_dir, world)
    data = _gathered(strucs, labels, targets, config, world)
    values, split, n_targets = data.values, data.split, len(data.targets)
    cache = config.output_dir if config.cache_graphs else None
    graphs = build_graphs(data.crystals, config, cache, world)
    train, validation, test = (
        [(graphs[i], values[i]) for i in part]
        for part in (split.train, split.validation, split.test)
    )

    # The same seed on every rank: DDP would hand out rank 0's weights anyway, but a lone process
    # and four ranks are to begin with the same ones.
    torch.manual_seed(config.random_seed)
    model = CrystalTransformer(config, config, n_targets)
    scale = Scale.of(values[split.train])
    model.mean.copy_(torch.from_numpy(scale.mean))
    model.deviation.copy_(torch.from_numpy(scale.deviation))

    def loss_sum(net: nn.Module, batch: Batch) -> torch.Tensor:
        predicted: torch.Tensor = net(batch)
        wrong = (predicted - batch.labels.reshape(predicted.shape)).abs()
        return (wrong / model.deviation).mean(dim=1).sum()

    def predictions(net: nn.Module, samples: Samples) -> Floats:
        return predict(net, samples, collate, config.batch_size, world, n_targets).numpy()

    def validate(net: nn.Module) -> float:
        return scale.overall(_errors(predictions(net, validation), values[split.validation]))

    with progress_bar(world) as show:
        progress = fit(
            model,
            train,
            collate=collate,
            loss_sum=loss_sum,
            validate=validate,
            config=config,
            settings={
                "system": SYSTEM,
                **config.decisive(),
                "data": data.digest,
                "targets": data.targets,
            },
            world=world,
            show=show,
            costs=[len(graph.source) for graph, _ in train],
        )

    best = config.output_dir / str(progress.best)
    model.load_state_dict(best_weights(checkpoint.load(best, world)))
    expected = values[split.test]
    predicted = predictions(model, test)
    errors, baselines = _errors(predicted, expected), _errors(scale.mean, expected)
    result = TrainingResult(
        n_train=len(split.train),
        n_validation=len(split.validation),
        n_test=len(split.test),
        world_size=world.world_size,
        best_epoch=progress.best_epoch,
        validation_mae=progress.best_metric,
        test_mae=scale.overall(errors),
        baseline_mae=scale.overall(baselines),
        targets=[
            Target(name=name, test_mae=error, baseline_mae=baseline)
            for name, error, baseline in zip(data.targets, errors, baselines, strict=True)
        ],
        # The loss is in deviations of the labels; the result speaks as the errors do.
        history=[
            replace(epoch, train_loss=epoch.train_loss * scale.overall(scale.deviation))
            for epoch in progress.history
        ],
        test=[
            Prediction(
                index=i, formula=data.crystals[i].name, labels=values[i].tolist(), predicted=p
            )
            for i, p in zip(split.test, predicted.tolist(), strict=True)
        ],
        options=config.model_dump(mode="json"),
        checkpoint=best,
        seconds=time.perf_counter() - started,
    )
    with together(world):
        if world.is_main:
            result.write(config.output_dir)
    return result


def _errors(predicted: Floats, expected: Floats) -> Floats:
    """Return the mean absolute error of each target."""
    errors: Floats = np.abs(predicted - expected).mean(axis=0)
    return errors
