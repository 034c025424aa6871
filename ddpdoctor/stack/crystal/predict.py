"""Predict by a checkpoint, in one process or on many ranks.

labels = predict_from_list("output", strucs)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.crystal.dataset import read_structures
from ddpdoctor.stack.crystal.graph import Floats, GraphConfig, as_crystal, collate
from ddpdoctor.stack.crystal.model import CrystalTransformer, ModelConfig
from ddpdoctor.stack.crystal.sharing import build_graphs
from ddpdoctor.stack.crystal.train import SYSTEM
from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.evaluation import predict
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import Backend, World, session
from ddpdoctor.stack.resume import best_checkpoint, best_weights, check_system

LONE = World(0, 0, 1, torch.device("cpu"), None)


@dataclass(frozen=True)
class Predictor:
    """A trained model, and what it must be told and asked."""

    model: CrystalTransformer
    graph: GraphConfig
    targets: list[str]
    log10: bool
    """Whether the model speaks of the log10 of its targets."""


@dataclass(frozen=True)
class Predicted:
    """What was predicted of each structure, in its target's own units."""

    targets: list[str]
    formulas: list[str]
    values: Floats
    """Structures x targets."""


def load_predictor(path: str | Path, world: World = LONE) -> Predictor:
    """Read a checkpoint, or the best one of an output folder. A collective.

    It does not matter how many ranks wrote it. Raises CheckpointError if it cannot be read, and
    ConfigError if it belongs to another system.
    """
    path = best_checkpoint(Path(path), world)
    state = checkpoint.load(path, world)
    check_system(state, SYSTEM, path)
    settings = state["settings"]
    graph = GraphConfig(**{name: settings[name] for name in GraphConfig.model_fields})
    size = ModelConfig(**{name: settings[name] for name in ModelConfig.model_fields})
    model = CrystalTransformer(graph, size, len(settings["targets"]))
    model.load_state_dict(best_weights(state))
    return Predictor(model.eval(), graph, settings["targets"], settings["log10"])


def load_model(path: str | Path) -> CrystalTransformer:
    """Return the model of a checkpoint, ready to predict, in this one process."""
    return load_predictor(path).model


def predict_from_list(
    path: str | Path,
    strucs: Sequence[Any],
    *,
    batch_size: int = 64,
    distributed: bool | None = None,
    backend: Backend = "auto",
) -> Predicted:
    """Predict the properties of structures, by a checkpoint or the best of an output folder.

    Every rank must pass the same structures, and gets all results. Raises a StackError, the same
    on all ranks, for what cannot be read or is no crystal.
    """
    with session(distributed=distributed, backend=backend) as world:
        return _predict(path, strucs, batch_size, world)


def predict_from_extxyz(
    path: str | Path,
    extxyz_file: str | Path,
    *,
    batch_size: int = 64,
    distributed: bool | None = None,
    backend: Backend = "auto",
) -> Predicted:
    """Predict the properties of the structures of an extended XYZ file."""
    with session(distributed=distributed, backend=backend) as world:
        with together(world):
            strucs = read_structures(extxyz_file)
        return _predict(path, strucs, batch_size, world)


def _predict(path: str | Path, strucs: Sequence[Any], batch_size: int, world: World) -> Predicted:
    predictor = load_predictor(path, world)
    with together(world):
        crystals = []
        for index, structure in enumerate(strucs):
            try:
                crystals.append(as_crystal(structure))
            except DataError as error:
                raise DataError(f"structure {index} {error}") from error
    graphs = build_graphs(crystals, predictor.graph, None, world)
    unknown = np.zeros(len(predictor.targets))
    samples = [(graph, unknown) for graph in graphs]
    model = predictor.model.to(world.device)
    values = predict(model, samples, collate, batch_size, world, len(predictor.targets)).numpy()
    return Predicted(
        predictor.targets,
        [crystal.name for crystal in crystals],
        10**values if predictor.log10 else values,
    )
