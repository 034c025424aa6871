"""What the tests of proteins run on ranks."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

from ddpdoctor.stack.errors import StackError
from ddpdoctor.stack.process_group import session, wrap
from ddpdoctor.stack.protein import (
    ProteinResult,
    load_model,
    synthetic_backbones,
    train_from_backbones,
    train_from_pdb,
)
from ddpdoctor.stack.protein.graph import (
    GraphConfig,
    MaskConfig,
    MaskedChains,
    build_graph,
    collate,
)
from ddpdoctor.stack.protein.model import MaskedResidueModel, ModelConfig, masked_loss_sum
from ddpdoctor.stack.protein.train import fixed_samples, residues_scored
from tests.stack.killing import killed_at
from tests.stack.protein.chains import sample

N_CHAINS = 23


def tiny(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a training that takes a second."""
    size = {"hidden_dim": 8, "heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    return {"n_epochs": 2, "batch_size": 4, "n_radial": 8, **size, **options}


def train(float64: bool = False, save_kills: int | None = None, **options: Any) -> dict[str, Any]:
    """Train on made-up chains, and return what two trainings can be compared by."""
    if float64:
        torch.set_default_dtype(torch.float64)
    with killed_at(save_kills):
        return summary(train_from_backbones(synthetic_backbones(N_CHAINS, 0), **tiny(options)))


def train_with_a_fault_on_rank_1(**options: Any) -> dict[str, Any]:
    """Train where one rank meets a chain that it cannot read, as only that rank sees it."""
    if os.environ["RANK"] == "1":
        original = MaskedChains.__getitem__

        def fails(self: MaskedChains, index: int) -> Any:
            if self.epoch == 1:
                raise OSError(5, "Input/output error")
            return original(self, index)

        MaskedChains.__getitem__ = fails  # type: ignore[method-assign, assignment]
    return train(**options)


def train_files(path: str, **options: Any) -> dict[str, Any]:
    return summary(train_from_pdb(path, **tiny(options)))


def summary(result: ProteinResult) -> dict[str, Any]:
    return {
        "world_size": result.world_size,
        "history": [[e.train_loss, e.metric, e.learning_rate] for e in result.history],
        "test": [result.test_loss, result.test_accuracy, result.baseline_loss],
        "left_out": result.left_out,
        "sizes": [result.n_train, result.n_validation, result.n_test],
        "weights": [p.tolist() for p in load_model(result.checkpoint).parameters()],
        "checkpoint": str(result.checkpoint),
        "generator": torch.rand(1).item(),
    }


def error_of(call: str, **kwargs: Any) -> list[str]:
    """Call a function of this file that is to be refused, and return the error's type and text."""
    try:
        globals()[call](**kwargs)
    except StackError as error:
        return [type(error).__name__, str(error)]
    return ["nothing", "it went well"]


def metric_of(path: str) -> list[float]:
    """Evaluate one set of weights on made-up chains, in float64."""
    torch.set_default_dtype(torch.float64)
    model = load_model(path)
    graphs = [build_graph(chain, GraphConfig()) for chain in synthetic_backbones(7, 1)]
    with session() as world:
        scored = residues_scored(model, fixed_samples(graphs, MaskConfig(), 0), 3, world)
    return scored[:, 0].tolist()


def step_without_masks_on_rank_1() -> list[list[float]]:
    """Take a step with DDP in which rank 1 has chains, but nothing masked in them."""
    torch.manual_seed(0)
    with session() as world:
        net = wrap(MaskedResidueModel(GraphConfig(), ModelConfig(hidden_dim=8, heads=2)), world)
        for _ in range(2):  # DDP complains of what lacked at the next forward
            graph, mask = sample()
            batch = collate([(graph, mask & (world.rank == 0))])
            loss = masked_loss_sum(net(batch), batch.labels)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            loss.backward()
        return [p.grad.flatten().tolist() for p in net.parameters() if p.grad is not None]
