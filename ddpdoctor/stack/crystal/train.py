"""Train on crystals: from a list of structures, or from an extended XYZ file.

    results = train_from_list(strucs, labels, n_epochs=50, output_dir="./output")

The same script runs in a plain process and under `torchrun --nproc-per-node=4`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.config import TrainingConfig, parse
from ddpdoctor.stack.crystal.dataset import checked, digest, read_extxyz, split_by_formula
from ddpdoctor.stack.crystal.graph import Batch, Floats, Graph, GraphConfig, collate
from ddpdoctor.stack.crystal.model import CrystalTransformer, ModelConfig
from ddpdoctor.stack.crystal.results import Prediction, Target, TrainingResult
from ddpdoctor.stack.crystal.sharing import build_graphs
from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.outcome import on_main, together
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


def _train(
    strucs: Sequence[Any],
    labels: Sequence[Any],
    targets: list[str] | None,
    config: CrystalConfig,
    world: World,
) -> TrainingResult:
    started = time.perf_counter()
    # What can be refused is refused now, not after hours of training.
    on_main(world, lambda: checkpoint.prepare_folder(config.output_dir))
    with together(world):
        for module in ("ase", "pymatgen.core.periodic_table", "vesin", "matplotlib.figure"):
            need(module, "crystal")
        crystals, values = checked(strucs, labels, log10=config.log10)
        split = split_by_formula(crystals, config.random_seed)
    n_targets = values.shape[1]
    if targets is None:
        targets = ["label"] if n_targets == 1 else [f"label {i}" for i in range(n_targets)]
    data = digest(crystals, values.tobytes())
    settings = {"system": SYSTEM, **config.decisive(), "data": data, "targets": targets}
    _check_equal(data, world)
    if world.is_main:
        sizes = len(split.train), len(split.validation), len(split.test)
        log.info("train %d, validation %d, test %d structures", *sizes)
        group = world.backend or "no process group"
        log.info("%d rank(s) on %s, %s", world.world_size, world.device, group)

    cache = config.output_dir if config.cache_graphs else None
    graphs = build_graphs(crystals, config, cache, world)
    train, validation, test = (
        [(graphs[i], values[i]) for i in part]
        for part in (split.train, split.validation, split.test)
    )

    # The same seed on every rank: DDP would hand out rank 0's weights anyway, but a lone process
    # and four ranks are to begin with the same ones.
    torch.manual_seed(config.random_seed)
    model = CrystalTransformer(config, config, n_targets)
    known = values[split.train]
    deviation = np.where(np.ptp(known, axis=0) > 0, known.std(axis=0), 1.0)
    model.mean.copy_(torch.from_numpy(known.mean(axis=0)))
    model.deviation.copy_(torch.from_numpy(deviation))
    # Of several targets each counts the same, whatever its units; one keeps its own.
    units = deviation if n_targets > 1 else np.ones(1)

    def loss_sum(net: nn.Module, batch: Batch) -> torch.Tensor:
        predicted: torch.Tensor = net(batch)
        wrong = (predicted - batch.labels.reshape(predicted.shape)).abs()
        return (wrong / model.deviation).mean(dim=1).sum()

    def absolute_error(net: nn.Module, samples: Samples) -> Floats:
        predicted = predict(net, samples, collate, config.batch_size, world, n_targets).numpy()
        wrong: Floats = np.abs(predicted - [labels for _, labels in samples]).mean(axis=0)
        return wrong

    with progress_bar(world) as show:
        progress = fit(
            model,
            train,
            collate=collate,
            loss_sum=loss_sum,
            validate=lambda net: float((absolute_error(net, validation) / units).mean()),
            config=config,
            settings=settings,
            world=world,
            show=show,
        )

    best = config.output_dir / str(progress.best)
    model.load_state_dict(best_weights(checkpoint.load(best, world)))
    predicted = predict(model, test, collate, config.batch_size, world, n_targets).numpy()
    expected = values[split.test]
    errors = np.abs(predicted - expected).mean(axis=0)
    baselines = np.abs(known.mean(axis=0) - expected).mean(axis=0)
    result = TrainingResult(
        n_train=len(train),
        n_validation=len(validation),
        n_test=len(test),
        world_size=world.world_size,
        best_epoch=next(e.epoch for e in progress.history if e.metric == progress.best_metric),
        validation_mae=progress.best_metric,
        test_mae=float((errors / units).mean()),
        baseline_mae=float((baselines / units).mean()),
        targets=[
            Target(name=name, test_mae=error, baseline_mae=baseline)
            for name, error, baseline in zip(targets, errors, baselines, strict=True)
        ],
        # The loss is in units of the labels' deviation; the result speaks in the labels' own.
        history=[
            replace(e, train_loss=float(e.train_loss * (deviation / units).mean()))
            for e in progress.history
        ],
        test=[
            Prediction(index=i, formula=crystals[i].name, labels=values[i].tolist(), predicted=p)
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


def _check_equal(digest_of_data: str, world: World) -> None:
    if world.world_size > 1:
        digests: list[str] = [""] * world.world_size
        dist.all_gather_object(digests, digest_of_data)
        if len(set(digests)) > 1:
            raise DataError("the ranks were given different structures or labels")
