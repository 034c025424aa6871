"""A backbone as a graph: residues, and an edge for every pair whose CA atoms are near.

All features are seen from a residue's own frame, so a graph does not change when the chain is moved
or turned; its mirror image, which no protein is, has another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat

from ddpdoctor.stack.batch import TensorBatch
from ddpdoctor.stack.protein.backbone import AMINO_ACIDS, UNKNOWN, Backbone, Floats

MASK = UNKNOWN + 1
"""What stands in the place of a residue that is to be predicted."""
N_TOKENS = MASK + 1
FARTHEST = 16
"""Residues along the chain beyond which one is as far as another."""
N_OFFSETS = 2 * FARTHEST + 2
"""From -FARTHEST to FARTHEST, and one for another stretch of the chain."""


class GraphConfig(BaseModel):
    """How a backbone becomes a graph."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    cutoff: PositiveFloat = 10.0
    """Å; residues whose CA atoms are nearer than this are neighbours."""


class MaskConfig(BaseModel):
    """What of a chain is to be predicted from the rest."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    mask_ratio: float = Field(default=0.15, gt=0, lt=1)
    """Share of the residues that are masked, each by chance."""


@dataclass(frozen=True)
class Graph:
    """One chain, with its edges pointing from `source` to `target`."""

    residues: torch.Tensor
    torsions: torch.Tensor
    """Residues x 6: sine and cosine of phi, psi and omega; 0 where a chain begins or ends."""
    source: torch.Tensor
    target: torch.Tensor
    length: torch.Tensor
    """Å between the CA atoms."""
    orientation: torch.Tensor
    """Edges x 12: where the source lies, and its three axes, in the frame of the target."""
    offset: torch.Tensor
    """How far along the chain the source is, from 0 to N_OFFSETS - 1."""


Sample = tuple[Graph, torch.Tensor]
"""A chain, and which of its residues are masked."""


@dataclass(frozen=True)
class Batch(TensorBatch):
    """Some chains as one graph that falls apart into theirs. It may hold none at all."""

    residues: torch.Tensor
    """Indices into AMINO_ACIDS, UNKNOWN, or MASK."""
    torsions: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    length: torch.Tensor
    orientation: torch.Tensor
    offset: torch.Tensor
    masked: torch.Tensor
    """Where the masked residues stand, in order."""
    labels: torch.Tensor
    """What they are."""
    chain: torch.Tensor
    """For each masked residue, which chain of the batch it belongs to."""
    sizes: torch.Tensor
    """Residues of each chain."""

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def weight(self) -> int:
        """What the loss is normalised by: its terms, the masked residues."""
        return len(self.labels)


def build_graph(backbone: Backbone, config: GraphConfig) -> Graph:
    """Return the graph of a chain."""
    frames = frames_of(backbone.positions)
    centres = backbone.positions[:, 1]
    distance = np.linalg.norm(centres[:, None] - centres, axis=-1)
    near = (distance < config.cutoff) & ~np.eye(len(centres), dtype=bool)
    target, source = np.nonzero(near)
    direction = (centres[source] - centres[target]) / distance[target, source, None]
    seen = np.einsum("eij,ei->ej", frames[target], direction)
    turned = np.einsum("eij,eik->ejk", frames[target], frames[source]).reshape(-1, 9)
    segments = backbone.segments
    steps = np.clip(source - target, -FARTHEST, FARTHEST) + FARTHEST
    steps = np.where(segments[source] == segments[target], steps, N_OFFSETS - 1)
    return Graph(
        residues=torch.from_numpy(backbone.residues),
        torsions=torch.from_numpy(torsions_of(backbone)).float(),
        source=torch.from_numpy(source),
        target=torch.from_numpy(target),
        length=torch.from_numpy(distance[target, source]).float(),
        orientation=torch.from_numpy(np.concatenate([seen, turned], axis=1)).float(),
        offset=torch.from_numpy(steps),
    )


def frames_of(positions: Floats) -> Floats:
    """Return a right-handed orthonormal frame per residue, its axes in columns (n x 3 x 3)."""
    n, ca, c = positions.transpose(1, 0, 2)
    first = _unit(c - ca)
    to_n = n - ca
    second = _unit(to_n - (to_n * first).sum(-1, keepdims=True) * first)
    return np.stack([first, second, np.cross(first, second)], axis=-1)


def torsions_of(backbone: Backbone) -> Floats:
    """Return sine and cosine of phi, psi and omega (n x 6); 0 where a neighbour lacks."""
    n, ca, c = backbone.positions.transpose(1, 0, 2)
    result = np.zeros((len(n), 3, 2))
    if len(n) > 1:
        bound = (np.diff(backbone.segments) == 0)[:, None]
        phi = _torsion(c[:-1], n[1:], ca[1:], c[1:])
        psi = _torsion(n[:-1], ca[:-1], c[:-1], n[1:])
        omega = _torsion(ca[:-1], c[:-1], n[1:], ca[1:])
        result[1:, 0] = np.where(bound, phi, 0)
        result[:-1, 1] = np.where(bound, psi, 0)
        result[1:, 2] = np.where(bound, omega, 0)
    return result.reshape(len(n), 6)


def draw_mask(graph: Graph, config: MaskConfig, generator: np.random.Generator) -> torch.Tensor:
    """Choose the residues of a chain to mask (bool, one per residue). It may be none at all."""
    chosen = torch.from_numpy(generator.random(len(graph.residues)) < config.mask_ratio)
    return chosen & (graph.residues != UNKNOWN)


def draw_fixed_mask(graph: Graph, config: MaskConfig, seed: Sequence[int]) -> torch.Tensor:
    """Choose residues to evaluate: always the same for the same seed, and at least one."""
    generator = np.random.default_rng(seed)
    mask = draw_mask(graph, config, generator)
    known = torch.nonzero(graph.residues != UNKNOWN)[:, 0]
    if not mask.any() and len(known):
        mask[known[generator.integers(len(known))]] = True
    return mask


class MaskedChains(Sequence[Sample]):
    """The chains of a training, masked anew in each epoch.

    Which residues of a chain are masked follows from seed, epoch and the chain's number alone. So
    it does not matter which rank or which worker gets the chain, and a resumed training masks what
    one that never stopped would have.
    """

    def __init__(self, graphs: Sequence[Graph], config: MaskConfig, seed: int) -> None:
        self.graphs = graphs
        self.config = config
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch's masks."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> Sample:  # type: ignore[override]  # no slices
        generator = np.random.default_rng([self.seed, self.epoch, index])
        return self.graphs[index], draw_mask(self.graphs[index], self.config, generator)


def collate(samples: Sequence[Sample]) -> Batch:
    """Join masked chains to one batch, in torch's default type."""
    real = torch.get_default_dtype()
    sizes = torch.tensor([len(graph.residues) for graph, _ in samples], dtype=torch.int64)
    chain = torch.repeat_interleave(torch.arange(len(samples)), sizes)
    shifts = (sizes.cumsum(0) - sizes).tolist()
    # Nothing comes first, as torch joins no empty list.
    graphs = [_NOBODY, *(graph for graph, _ in samples)]
    residues = torch.cat([graph.residues for graph in graphs])
    mask = torch.cat([torch.zeros(0, dtype=torch.bool), *(mask for _, mask in samples)])
    return Batch(
        residues=residues.masked_fill(mask, MASK),
        torsions=torch.cat([graph.torsions for graph in graphs]).to(real),
        source=torch.cat([g.source + s for g, s in zip(graphs, [0, *shifts], strict=True)]),
        target=torch.cat([g.target + s for g, s in zip(graphs, [0, *shifts], strict=True)]),
        length=torch.cat([graph.length for graph in graphs]).to(real),
        orientation=torch.cat([graph.orientation for graph in graphs]).to(real),
        offset=torch.cat([graph.offset for graph in graphs]),
        masked=torch.nonzero(mask)[:, 0],
        labels=residues[mask],
        chain=chain[mask],
        sizes=sizes,
    )


def composition(graphs: Sequence[Graph]) -> torch.Tensor:
    """Return how often each amino acid occurs (20 shares), each counted once more than it is."""
    residues = torch.cat([graph.residues for graph in graphs])
    counts = torch.bincount(residues[residues != UNKNOWN], minlength=len(AMINO_ACIDS)) + 1
    return counts.double() / counts.sum()


_NOBODY = Graph(
    residues=torch.zeros(0, dtype=torch.int64),
    torsions=torch.zeros(0, 6),
    source=torch.zeros(0, dtype=torch.int64),
    target=torch.zeros(0, dtype=torch.int64),
    length=torch.zeros(0),
    orientation=torch.zeros(0, 12),
    offset=torch.zeros(0, dtype=torch.int64),
)


def _torsion(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """Return sine and cosine (n x 2) of the torsion about b-c."""
    axis = _unit(c - b)
    one, other = np.cross(b - a, axis), np.cross(axis, d - c)
    sine, cosine = (np.cross(one, other) * axis).sum(-1), (one * other).sum(-1)
    return _unit(np.stack([sine, cosine], axis=-1))


def _unit(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    return unit
