"""Train on crystals: from a list of structures, or from an extended XYZ file.

    results = train_from_list(strucs, labels, n_epochs=50, output_dir="./output")

The same script runs in a plain process and under `torchrun --nproc-per-node=4`.
"""

from __future__ import annotations

import logging
import tempfile
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
from ddpdoctor.stack.config import Backend, TrainingConfig, parse
from ddpdoctor.stack.crystal.dataset import (
    build_graphs,
    checked,
    digest,
    read_extxyz,
    split_by_formula,
)
from ddpdoctor.stack.crystal.graph import Batch, Graph, GraphConfig, collate
from ddpdoctor.stack.crystal.model import CrystalTransformer, ModelConfig
from ddpdoctor.stack.crystal.results import Prediction, TrainingResult
from ddpdoctor.stack.errors import CheckpointError, DataError
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.outcome import on_main, together
from ddpdoctor.stack.process_group import World, session
from ddpdoctor.stack.progress import progress_bar
from ddpdoctor.stack.resume import best_weights
from ddpdoctor.stack.trainer import fit

log = logging.getLogger(__name__)
Samples = list[tuple[Graph, float]]


class CrystalConfig(TrainingConfig, GraphConfig, ModelConfig):
    """All options of a training on crystals."""

    cache_graphs: bool = False
    """Build the graphs once, keep them in output_dir, and let every rank read them there."""
    log10: bool = False
    """Train on the log10 of the labels."""


def train_from_list(
    strucs: Sequence[Any],
    labels: Sequence[float],
    *,
    distributed: bool | None = None,
    backend: Backend = "auto",
    **options: Any,
) -> TrainingResult:
    """Train on structures (pymatgen Structure or ase Atoms) with one label each.

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
        return _train(strucs, labels, config, world)


def train_from_extxyz(
    extxyz_file: str | Path,
    target_property: str,
    *,
    distributed: bool | None = None,
    backend: Backend = "auto",
    **options: Any,
) -> TrainingResult:
    """Train on the structures of an extended XYZ file, with one of their properties as label.

    Every rank reads the file. Everything else is as in `train_from_list`.
    """
    config = parse(CrystalConfig, options)
    with session(distributed=distributed, backend=backend) as world:
        with together(world):
            strucs, labels = read_extxyz(extxyz_file, target_property)
        return _train(strucs, labels, config, world)


def load_model(path: str | Path) -> CrystalTransformer:
    """Return the model of a checkpoint, ready to predict, in this one process.

    It does not matter how many ranks wrote it. Raises CheckpointError if it cannot be read.
    """
    state = checkpoint.load(Path(path), World(0, 0, 1, torch.device("cpu"), None))
    settings = state["settings"]
    graph = GraphConfig(**{name: settings[name] for name in GraphConfig.model_fields})
    size = ModelConfig(**{name: settings[name] for name in ModelConfig.model_fields})
    model = CrystalTransformer(graph, size)
    model.load_state_dict(best_weights(state))
    return model.eval()


def _train(
    strucs: Sequence[Any], labels: Sequence[float], config: CrystalConfig, world: World
) -> TrainingResult:
    started = time.perf_counter()
    # What can be refused is refused now, not after hours of training.
    on_main(world, lambda: _prepare(config.output_dir))
    with together(world):
        for module in ("ase", "pymatgen.core.periodic_table", "vesin", "matplotlib.figure"):
            need(module, "crystal")
        crystals, values = checked(strucs, labels, log10=config.log10)
        split = split_by_formula(crystals, config.random_seed)
    settings = {**config.decisive(), "data": digest(crystals, values.tobytes())}
    _check_equal(settings["data"], world)
    if world.is_main:
        sizes = len(split.train), len(split.validation), len(split.test)
        log.info("train %d, validation %d, test %d structures", *sizes)
        log.info("%d rank(s), %s on %s", world.world_size, world.backend, world.device)

    cache = config.output_dir if config.cache_graphs else None
    graphs = build_graphs(crystals, config, cache, world)
    train, validation, test = (
        [(graphs[i], float(values[i])) for i in part]
        for part in (split.train, split.validation, split.test)
    )

    # The same seed on every rank: DDP would hand out rank 0's weights anyway, but a lone process
    # and four ranks are to begin with the same ones.
    torch.manual_seed(config.random_seed)
    model = CrystalTransformer(config, config)
    known = values[split.train]
    deviation = float(known.std()) or 1.0
    model.mean.fill_(known.mean())
    model.deviation.fill_(deviation)

    def loss_sum(net: nn.Module, batch: Batch) -> torch.Tensor:
        predicted: torch.Tensor = net(batch)
        return (predicted - batch.labels).abs().sum() / deviation

    def mean_absolute_error(net: nn.Module, samples: Samples) -> float:
        predicted = predict(net, samples, collate, config.batch_size, world).numpy()
        return float(np.abs(predicted - [label for _, label in samples]).mean())

    with progress_bar(world) as show:
        progress = fit(
            model,
            train,
            collate=collate,
            loss_sum=loss_sum,
            validate=lambda net: mean_absolute_error(net, validation),
            config=config,
            settings=settings,
            world=world,
            show=show,
        )

    best = config.output_dir / str(progress.best)
    model.load_state_dict(best_weights(checkpoint.load(best, world)))
    predicted = predict(model, test, collate, config.batch_size, world).numpy()
    expected = values[split.test]
    result = TrainingResult(
        n_train=len(train),
        n_validation=len(validation),
        n_test=len(test),
        world_size=world.world_size,
        best_epoch=next(e.epoch for e in progress.history if e.metric == progress.best_metric),
        validation_mae=progress.best_metric,
        test_mae=float(np.abs(predicted - expected).mean()),
        baseline_mae=float(np.abs(known.mean() - expected).mean()),
        # The loss is in units of the labels' deviation; the result speaks in the labels' own.
        history=[replace(e, train_loss=e.train_loss * deviation) for e in progress.history],
        test=[
            Prediction(index=i, formula=crystals[i].name, label=values[i], predicted=p)
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


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CheckpointError(f"cannot write into {folder}: {error.strerror}") from error


def _check_equal(digest_of_data: str, world: World) -> None:
    if world.world_size > 1:
        digests: list[str] = [""] * world.world_size
        dist.all_gather_object(digests, digest_of_data)
        if len(set(digests)) > 1:
            raise DataError("the ranks were given different structures or labels")
