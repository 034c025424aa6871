"""Predicts masked residues from the backbone and from the residues that are left.

The encoder sees the geometry alone: torsions, distances and orientations. The decoder adds what the
visible residues are, and works on the masked ones only: each asks its neighbours.
"""

from __future__ import annotations

from typing import Self

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator
from torch import nn

from ddpdoctor.stack.attention import EdgeAttention
from ddpdoctor.stack.protein.backbone import AMINO_ACIDS
from ddpdoctor.stack.protein.graph import N_OFFSETS, N_TOKENS, Batch, GraphConfig


class ModelConfig(BaseModel):
    """The size of the network."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    hidden_dim: PositiveInt = 64
    """Length of the vector of each residue."""
    heads: PositiveInt = 4
    """Attention heads in each layer."""
    num_encoder_layers: PositiveInt = 2
    """Layers that see the geometry alone."""
    num_decoder_layers: PositiveInt = 2
    """Layers in which masked residues ask their neighbours."""
    n_radial: int = Field(default=16, ge=2)
    """Number of Gaussians that the distances are spread over."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the numbers that are left out at random in training."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.hidden_dim % self.heads:
            raise ValueError(
                f"hidden_dim {self.hidden_dim} is not a multiple of heads {self.heads}"
            )
        return self


class MaskedResidueModel(nn.Module):
    """Gives each masked residue a score for each of the twenty amino acids."""

    def __init__(self, graph: GraphConfig, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_dim
        self.torsions = nn.Linear(6, width)
        self.edge = EdgeFeatures(graph, config)
        self.encoder = nn.ModuleList(
            EdgeAttention(width, config.heads, config.dropout)
            for _ in range(config.num_encoder_layers)
        )
        self.residue = nn.Embedding(N_TOKENS, width)
        self.decoder = nn.ModuleList(
            EdgeAttention(width, config.heads, config.dropout)
            for _ in range(config.num_decoder_layers)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, len(AMINO_ACIDS)))

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the scores, masked residues x 20."""
        edges, weight = self.edge(batch)
        states = self.torsions(batch.torsions)
        for layer in self.encoder:
            states = layer(states, edges, weight, batch.source, batch.target)
        states = states + self.residue(batch.residues)

        # Only edges that point to a masked residue matter from here on, and those residues get
        # numbers of their own.
        number = batch.target.new_full((len(states),), -1)
        number[batch.masked] = torch.arange(len(batch.masked), device=number.device)
        asking = number[batch.target] >= 0
        source, target = batch.source[asking], number[batch.target[asking]]
        asked = states[batch.masked]
        for layer in self.decoder:
            asked = layer(asked, edges[asking], weight[asking], source, target, memory=states)
        scores: torch.Tensor = self.head(asked)
        return scores


class EdgeFeatures(nn.Module):
    """Turns distance, orientation and offset into a vector per edge, and a weight that fades."""

    centres: torch.Tensor

    def __init__(self, graph: GraphConfig, config: ModelConfig) -> None:
        super().__init__()
        self.cutoff = graph.cutoff
        self.register_buffer("centres", torch.linspace(0, graph.cutoff, config.n_radial))
        self.geometry = nn.Linear(config.n_radial + 12, config.hidden_dim)
        self.offset = nn.Embedding(N_OFFSETS, config.hidden_dim)

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return features (edges x width) and weights (edges)."""
        spacing = self.cutoff / (len(self.centres) - 1)
        spread = torch.exp(-(((batch.length[:, None] - self.centres) / spacing) ** 2))
        geometry = self.geometry(torch.cat([spread, batch.orientation], dim=1))
        fading = (torch.cos(torch.pi * batch.length / self.cutoff) + 1) / 2
        return geometry + self.offset(batch.offset), fading


def masked_loss_sum(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Add up the cross entropies (nats) of masked residues, to be divided by their global number.

    Without any, it is a zero that depends on every parameter: `torch.tensor(0.0)` would have no
    gradient, and DDP on the other ranks would wait for that of this one.
    """
    summed = nn.functional.cross_entropy(scores, labels, reduction="sum")
    return summed if len(labels) else scores.sum() * 0.0
