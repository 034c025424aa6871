"""A transformer on the crystal graph: every atom attends to its neighbours.

Attention over edges needs no graph framework: the softmax of each atom's incoming edges is an
`index_add_` of exponentials, and so is the sum of the messages.
"""

from __future__ import annotations

from typing import Self

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from torch import nn

from ddpdoctor.stack.crystal.elements import element_table
from ddpdoctor.stack.crystal.graph import Batch, GraphConfig


class ModelConfig(BaseModel):
    """The size of the network."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: PositiveInt = 64
    heads: PositiveInt = 4
    layers: PositiveInt = 2
    n_radial: PositiveInt = 32
    """Number of Gaussians that the edge lengths are spread over."""
    dropout: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self


class CrystalTransformer(nn.Module):
    """Predicts one number per crystal, as a mean over its atoms.

    With distances (and angles) alone the prediction is the same for a crystal that is moved,
    turned, mirrored, renumbered, or repeated into a supercell. With `use_lattice` it depends on
    the size of the cell that was given, so all of these hold but the last.
    """

    mean: torch.Tensor
    deviation: torch.Tensor
    elements: torch.Tensor

    def __init__(self, graph: GraphConfig, config: ModelConfig) -> None:
        super().__init__()
        # Buffers, not options: a checkpoint then predicts by itself, in the right units.
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("deviation", torch.ones(()))
        self.register_buffer("elements", element_table().to(torch.get_default_dtype()))
        self.atom = nn.Linear(self.elements.shape[1], config.width)
        self.element = nn.Embedding(len(self.elements), config.width)
        self.edge = EdgeFeatures(graph, config)
        self.layers = nn.ModuleList(AttentionLayer(config) for _ in range(config.layers))
        self.head = nn.Sequential(
            nn.LayerNorm(config.width),
            nn.Linear(config.width, config.width),
            nn.SiLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.width, 1),
        )

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the predictions, one per crystal of the batch, in the units of the labels."""
        atoms = self.atom(self.elements[batch.numbers]) + self.element(batch.numbers)
        edges, weight = self.edge(batch)
        for layer in self.layers:
            atoms = layer(atoms, edges, weight, batch.source, batch.target)
        # Out of autocast: a mean over many atoms, and the units, want full precision.
        votes = self.head(atoms).squeeze(-1).to(self.mean.dtype)
        count = torch.bincount(batch.crystal, minlength=len(batch))
        total = votes.new_zeros(len(batch)).index_add_(0, batch.crystal, votes)
        prediction: torch.Tensor = total / count * self.deviation + self.mean
        return prediction


class EdgeFeatures(nn.Module):
    """Turns lengths and angles into one vector per edge, and a weight that fades at the cutoff."""

    centres: torch.Tensor

    def __init__(self, graph: GraphConfig, config: ModelConfig) -> None:
        super().__init__()
        self.cutoff = graph.cutoff
        self.register_buffer("centres", torch.linspace(0, graph.cutoff, config.n_radial))
        self.length = nn.Linear(config.n_radial, config.width)
        # Modules are made only where they are used: DDP waits for the gradient of every
        # parameter, and one that never takes part is an error in the second step.
        self.lattice = nn.Linear(config.n_radial, config.width) if graph.use_lattice else None
        self.angle = nn.Linear(graph.n_angles, config.width) if graph.use_angle else None

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features (edges x width) and weights (edges)."""
        spacing = self.cutoff / (len(self.centres) - 1)
        # Cell vectors may be longer than the cutoff; logarithms bring them into range.
        length = torch.where(
            batch.is_lattice, self.cutoff * torch.log1p(batch.length) / 5, batch.length
        )
        spread = torch.exp(-(((length[:, None] - self.centres) / spacing) ** 2))
        features = self.length(spread)
        if self.lattice is not None:
            features = torch.where(batch.is_lattice[:, None], self.lattice(spread), features)
        if self.angle is not None:
            angles = batch.angles.reshape(-1, self.angle.in_features)
            features = features + self.angle(angles)
        fading = (torch.cos(torch.pi * batch.length / self.cutoff) + 1) / 2
        return features, torch.where(batch.is_lattice, torch.ones_like(fading), fading)


class AttentionLayer(nn.Module):
    """Multi-head attention of every atom over its incoming edges, then a feed-forward step."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.edge_key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.SiLU(),
            nn.Dropout(config.dropout),
            nn.Linear(2 * width, width),
        )

    def forward(
        self,
        atoms: torch.Tensor,
        edges: torch.Tensor,
        weight: torch.Tensor,
        source: torch.Tensor,
        target: torch.Tensor,
    ) -> torch.Tensor:
        """Return the atoms' new vectors (atoms x width)."""
        normed = self.norm(atoms)
        query = self._by_head(self.query(normed)[target])
        pair = self.key_value(normed)[source] + self.edge_key_value(edges)
        key, value = self._by_head(nn.functional.silu(pair)).chunk(2, dim=-1)
        score = (query * key).sum(-1) / key.shape[-1] ** 0.5
        share = edge_softmax(score.to(weight.dtype), weight, target, len(atoms))
        message = (share.unsqueeze(-1) * value).flatten(1).to(weight.dtype)
        gathered = message.new_zeros(len(atoms), message.shape[1]).index_add_(0, target, message)
        atoms = atoms + self.out(gathered)
        result: torch.Tensor = atoms + self.feed_forward(atoms)
        return result

    def _by_head(self, vectors: torch.Tensor) -> torch.Tensor:
        return vectors.view(len(vectors), self.heads, vectors.shape[1] // self.heads)


def edge_softmax(
    score: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, n_atoms: int
) -> torch.Tensor:
    """Softmax of `score` (edges x heads) over the edges that share a target, weighted by `weight`.

    An edge at the cutoff has weight 0 and no say, so the result is smooth where neighbours enter.
    An atom without neighbours has no edges, and nothing is divided by zero.
    """
    # The largest score is subtracted so that no exponential overflows; it cancels, so it needs no
    # gradient.
    largest = score.new_full((n_atoms, score.shape[1]), -torch.inf).scatter_reduce_(
        0, target[:, None].expand_as(score), score.detach(), "amax"
    )
    exponential = weight[:, None] * torch.exp(score - largest[target])
    total = exponential.new_zeros(n_atoms, score.shape[1]).index_add_(0, target, exponential)
    return exponential / (total[target] + 1e-12)
