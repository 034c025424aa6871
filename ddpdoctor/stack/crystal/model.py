"""A transformer on the crystal graph: every atom attends to its neighbours."""

from __future__ import annotations

from typing import Self

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from torch import nn

from ddpdoctor.stack.attention import EdgeAttention
from ddpdoctor.stack.crystal.elements import element_table
from ddpdoctor.stack.crystal.graph import Batch, GraphConfig


class ModelConfig(BaseModel):
    """The size of the network."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    width: PositiveInt = 64
    """Numbers that describe an atom; a multiple of heads."""
    heads: PositiveInt = 4
    """Attention heads in each layer."""
    layers: PositiveInt = 2
    """How often every atom attends to its neighbours."""
    n_radial: int = Field(default=32, ge=2)
    """Number of Gaussians that the edge lengths are spread over."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the numbers that are left out at random while training."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self


class CrystalTransformer(nn.Module):
    """Predicts one number per crystal and target, each as a mean over the crystal's atoms.

    With distances (and angles) alone the prediction is the same for a crystal that is moved,
    turned, mirrored, renumbered, or repeated into a supercell. With `use_lattice` it depends on
    the size of the cell that was given, so all of these hold but the last.
    """

    mean: torch.Tensor
    deviation: torch.Tensor
    elements: torch.Tensor

    def __init__(self, graph: GraphConfig, config: ModelConfig, n_targets: int = 1) -> None:
        super().__init__()
        # Buffers, not options: a checkpoint then predicts by itself, in the right units.
        self.register_buffer("mean", torch.zeros(n_targets))
        self.register_buffer("deviation", torch.ones(n_targets))
        self.register_buffer("elements", element_table().to(torch.get_default_dtype()))
        self.atom = nn.Linear(self.elements.shape[1], config.width)
        self.element = nn.Embedding(len(self.elements), config.width)
        self.edge = EdgeFeatures(graph, config)
        self.layers = nn.ModuleList(
            EdgeAttention(config.width, config.heads, config.dropout) for _ in range(config.layers)
        )
        self.head = nn.Sequential(
            nn.LayerNorm(config.width),
            nn.Linear(config.width, config.width),
            nn.SiLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.width, n_targets),
        )

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the predictions (crystals of the batch x targets) in the units of the labels."""
        atoms = self.atom(self.elements[batch.numbers]) + self.element(batch.numbers)
        edges, weight = self.edge(batch)
        for layer in self.layers:
            atoms = layer(atoms, edges, weight, batch.source, batch.target)
        # Out of autocast: a mean over many atoms, and the units, want full precision.
        votes = self.head(atoms).to(self.mean.dtype)
        count = torch.bincount(batch.crystal, minlength=len(batch))[:, None]
        total = votes.new_zeros(len(batch), votes.shape[1]).index_add_(0, batch.crystal, votes)
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
        # Cell vectors are often longer than the cutoff: a logarithm brings all up to 150 Å, whose
        # log1p is 5, into the range of the Gaussians.
        shortened = self.cutoff * torch.log1p(batch.length) / 5
        length = torch.where(batch.is_lattice, shortened, batch.length)
        spread = torch.exp(-(((length[:, None] - self.centres) / spacing) ** 2))
        features = self.length(spread)
        if self.lattice is not None:
            features = torch.where(batch.is_lattice[:, None], self.lattice(spread), features)
        if self.angle is not None:
            angles = batch.angles.reshape(-1, self.angle.in_features)
            features = features + self.angle(angles)
        fading = (torch.cos(torch.pi * batch.length / self.cutoff) + 1) / 2
        return features, torch.where(batch.is_lattice, torch.ones_like(fading), fading)
