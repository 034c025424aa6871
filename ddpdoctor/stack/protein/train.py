"""Train on the backbones of proteins: mask some residues, and learn to predict them.

    result = train_from_pdb("structures/", cache_dir="cache", n_epochs=50, output_dir="./output")

The same script runs in a plain process and under `torchrun --nproc-per-node=4`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import PositiveInt
from torch import nn

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.config import Flags, TrainingConfig, parse
from ddpdoctor.stack.evaluation import predict_ragged
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.preparation import prepare_folder, require_equal
from ddpdoctor.stack.process_group import Backend, World, session
from ddpdoctor.stack.progress import progress_bar
from ddpdoctor.stack.protein.backbone import Backbone
from ddpdoctor.stack.protein.dataset import Chains, as_chains, read_chains, split_by_family
from ddpdoctor.stack.protein.graph import (
    Batch,
    Graph,
    GraphConfig,
    MaskConfig,
    MaskedChains,
    Sample,
    collate,
    composition,
    draw_fixed_mask,
)
from ddpdoctor.stack.protein.model import MaskedResidueModel, ModelConfig, masked_loss_sum
from ddpdoctor.stack.protein.results import ProteinResult
from ddpdoctor.stack.resume import best_weights, check_system
from ddpdoctor.stack.trainer import fit

log = logging.getLogger(__name__)
SYSTEM = "protein"
_MASKS = 4
"""How often each chain is evaluated, with other residues masked."""


class ProteinConfig(TrainingConfig, GraphConfig, MaskConfig, ModelConfig):
    """All options of a training on proteins."""

    batch_size: PositiveInt = 8
    """Chains per rank: one optimizer step sees batch_size x ranks x accumulation_steps."""
    n_epochs: Annotated[PositiveInt, Flags(("epochs",))] = 20
    """How often every chain is seen."""
    output_dir: Annotated[Path, Flags(("save-dir",))] = Path("output")
    """Folder for checkpoints and results, made if it does not exist. One training at a time
    owns it."""


def train_from_pdb(
    pdb_path: str | Path,
    *,
    cache_dir: str | Path | None = None,
    distributed: bool | None = None,
    backend: Backend = "auto",
    **options: Any,
) -> ProteinResult:
    """Train on the protein chains of a PDB or mmCIF file, or of all in a folder.

    `options` are the fields of ProteinConfig, such as batch_size (chains per rank), n_epochs,
    learning_rate, hidden_dim, num_encoder_layers, num_decoder_layers, mask_ratio, random_seed,
    resume and output_dir. `cache_dir` keeps what was read, for the other ranks of the node and for
    later trainings. `distributed` and `backend` are those of `process_group.session`: left out,
    the launcher decides.

    Returns the result on every rank; rank 0 also writes it to output_dir. Raises a StackError, the
    same one on all ranks, for anything that the caller can cure.
    """
    config = parse(ProteinConfig, options)
    with session(distributed=distributed, backend=backend) as world:
        with together(world):
            need("gemmi", "protein")
        folder = None if cache_dir is None else Path(cache_dir)
        return _train(read_chains(Path(pdb_path), folder, config, world), config, world)


def train_from_backbones(
    backbones: Sequence[Backbone],
    *,
    distributed: bool | None = None,
    backend: Backend = "auto",
    **options: Any,
) -> ProteinResult:
    """Train on chains that are in memory, such as those of `synthetic_backbones`.

    Every rank must pass the same ones. Everything else is as in `train_from_pdb`.
    """
    config = parse(ProteinConfig, options)
    with session(distributed=distributed, backend=backend) as world:
        with together(world):
            chains = as_chains(backbones, config)
        return _train(chains, config, world)


def load_model(path: str | Path) -> MaskedResidueModel:
    """Return the model of a checkpoint, ready to predict, in this one process.

    It does not matter how many ranks wrote it. Raises CheckpointError if it cannot be read.
    """
    state = checkpoint.load(Path(path), World(0, 0, 1, torch.device("cpu"), None))
    check_system(state, SYSTEM, Path(path))
    settings = state["settings"]
    graph = GraphConfig(**{name: settings[name] for name in GraphConfig.model_fields})
    size = ModelConfig(**{name: settings[name] for name in ModelConfig.model_fields})
    model = MaskedResidueModel(graph, size)
    model.load_state_dict(best_weights(state))
    return model.eval()


def residues_scored(
    net: nn.Module, samples: Sequence[Sample], batch_size: int, world: World
) -> torch.Tensor:
    """Return for each masked residue its cross entropy, and 1 if it was given the highest score.

    In the order of the samples, the same on every rank (masked residues x 2). A collective.
    """

    def infer(net: nn.Module, batch: Batch) -> list[torch.Tensor]:
        scores = net(batch)
        entropy = nn.functional.cross_entropy(scores, batch.labels, reduction="none")
        right = scores.argmax(dim=1) == batch.labels
        table = torch.stack([entropy, right.to(entropy.dtype)], dim=1)
        counts = torch.bincount(batch.chain, minlength=len(batch)).tolist()
        return list(torch.split(table, counts))

    return torch.cat(predict_ragged(net, samples, collate, infer, 2, batch_size, world))


def fixed_samples(graphs: Sequence[Graph], config: MaskConfig, seed: int) -> list[Sample]:
    """Return chains to evaluate on, whose masks do not depend on who evaluates, or when."""
    return [
        (graph, draw_fixed_mask(graph, config, [seed, index, draw]))
        for draw in range(_MASKS)
        for index, graph in enumerate(graphs)
    ]


def _train(chains: Chains, config: ProteinConfig, world: World) -> ProteinResult:
    started = time.perf_counter()
    prepare_folder(config.output_dir, world)
    with together(world):
        split = split_by_family(chains, config.random_seed)
        data = chains.digest()
    require_equal(data, "chains", world)
    if world.is_main:
        sizes = len(split.train), len(split.validation), len(split.test)
        log.info("train %d, validation %d, test %d chains", *sizes)
    train, validation, test = (
        [chains.graphs[i] for i in part] for part in (split.train, split.validation, split.test)
    )
    to_validate = fixed_samples(validation, config, config.random_seed)
    to_test = fixed_samples(test, config, config.random_seed)
    batch_size = config.plan(world.world_size).batch_size

    # The same seed on every rank: DDP would hand out rank 0's weights anyway, but a lone process
    # and four ranks are to begin with the same ones.
    torch.manual_seed(config.random_seed)
    model = MaskedResidueModel(config, config)
    with progress_bar(world) as show:
        progress = fit(
            model,
            MaskedChains(train, config, config.random_seed),
            collate=collate,
            loss_sum=lambda net, batch: masked_loss_sum(net(batch), batch.labels),
            validate=lambda net: _mean(residues_scored(net, to_validate, batch_size, world)[:, 0]),
            config=config,
            settings={"system": SYSTEM, **config.decisive(), "data": data},
            world=world,
            show=show,
        )

    best = config.output_dir / str(progress.best)
    model.load_state_dict(best_weights(checkpoint.load(best, world)))
    scored = residues_scored(model, to_test, batch_size, world)
    shares, labels = composition(train), collate(to_test).labels
    result = ProteinResult(
        n_train=len(train),
        n_validation=len(validation),
        n_test=len(test),
        left_out=chains.left_out,
        world_size=world.world_size,
        best_epoch=progress.best_epoch,
        validation_loss=progress.best_metric,
        test_loss=_mean(scored[:, 0]),
        baseline_loss=_mean(-shares.log()[labels]),
        test_accuracy=_mean(scored[:, 1]),
        baseline_accuracy=_mean((labels == shares.argmax()).double()),
        history=progress.history,
        options=config.model_dump(mode="json"),
        checkpoint=best,
        seconds=time.perf_counter() - started,
    )
    with together(world):
        if world.is_main:
            result.write(config.output_dir)
    return result


def _mean(values: torch.Tensor) -> float:
    return float(values.mean())
