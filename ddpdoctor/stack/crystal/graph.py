"""A crystal as a graph: atoms, and an edge for every pair of atoms closer than a cutoff.

All features are distances and angles, so a graph does not change when the crystal is moved or
turned; and neighbours are all those within the cutoff, never "the nearest twelve", whose choice
among equally near ones would depend on the order of the atoms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

from ddpdoctor.stack.batch import TensorBatch
from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.extras import need

Floats = NDArray[np.float64]


class GraphConfig(BaseModel):
    """How a structure becomes a graph."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    cutoff: PositiveFloat = 5.0
    """Å; atoms nearer than this are neighbours."""
    use_lattice: bool = False
    """Add three edges per atom, to its own images along the vectors of the reduced cell."""
    use_angle: bool = False
    """Describe each edge by the angles that it makes with the other edges of its atom."""
    n_angles: PositiveInt = 12
    """Number of Gaussians that the angles from 0 to pi are spread over."""


@dataclass(frozen=True)
class Crystal:
    """The part of a structure that is used."""

    numbers: NDArray[np.int64]
    """Atomic numbers, one per atom."""
    positions: Floats
    """Å, atoms x 3."""
    cell: Floats
    """Å, one lattice vector per row."""

    @property
    def formula(self) -> tuple[tuple[int, int], ...]:
        """Atomic numbers with their smallest whole proportions: equal for all polymorphs."""
        elements, counts = np.unique(self.numbers, return_counts=True)
        divisor = math.gcd(*counts.tolist())
        return tuple(zip(elements.tolist(), (counts // divisor).tolist(), strict=True))

    @property
    def name(self) -> str:
        """The formula for people, such as "TiO2"."""
        symbols = need("ase.data", "crystal").chemical_symbols
        return "".join(symbols[z] + (str(n) if n > 1 else "") for z, n in self.formula)


@dataclass(frozen=True)
class Graph:
    """One crystal, with its edges pointing from `source` to `target`."""

    numbers: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    length: torch.Tensor
    """Å, float64, one per edge."""
    is_lattice: torch.Tensor
    angles: torch.Tensor
    """Edges x n_angles; edges x 0 without `use_angle`."""


@dataclass(frozen=True)
class Batch(TensorBatch):
    """Some crystals as one graph that falls apart into theirs. It may hold none at all."""

    numbers: torch.Tensor
    source: torch.Tensor
    target: torch.Tensor
    length: torch.Tensor
    is_lattice: torch.Tensor
    angles: torch.Tensor
    crystal: torch.Tensor
    """For each atom, which crystal of the batch it belongs to."""
    labels: torch.Tensor
    """Crystals x targets."""

    def __len__(self) -> int:
        return len(self.labels)


def as_crystal(structure: Any) -> Crystal:
    """Take what is needed out of a pymatgen Structure or an ase Atoms.

    Raises DataError for anything else, and for what is not a crystal: no atoms, positions that are
    not numbers, sites with mixed occupation, or no cell that is periodic in three dimensions.
    """
    if hasattr(structure, "lattice"):
        if not structure.is_ordered:
            raise DataError("has sites with mixed occupation")
        numbers, positions = structure.atomic_numbers, structure.cart_coords
        cell, periodic = structure.lattice.matrix, structure.lattice.pbc
    elif hasattr(structure, "get_atomic_numbers"):
        numbers, positions = structure.get_atomic_numbers(), structure.get_positions()
        cell, periodic = structure.cell.array, structure.pbc
    else:
        kind = type(structure).__name__
        raise DataError(f"is a {kind}, neither a pymatgen Structure nor an ase Atoms")
    crystal = Crystal(np.asarray(numbers, np.int64), np.array(positions), np.array(cell))
    if len(crystal.numbers) == 0:
        raise DataError("has no atoms")
    if not (np.isfinite(crystal.positions).all() and np.isfinite(crystal.cell).all()):
        raise DataError("has positions or cell vectors that are not finite numbers")
    if not all(periodic) or abs(np.linalg.det(crystal.cell)) < 1e-6:
        raise DataError("has no cell that is periodic in three dimensions")
    if crystal.numbers.min() < 1 or crystal.numbers.max() > 118:
        raise DataError("has an atom of unknown element")
    return crystal


def build_graph(crystal: Crystal, config: GraphConfig) -> Graph:
    """Find the neighbours of every atom and describe the edges to them."""
    neighbours = need("vesin", "crystal").NeighborList(cutoff=config.cutoff, full_list=True)
    target, source, length, vector = neighbours.compute(
        points=crystal.positions, box=crystal.cell, periodic=True, quantities="ijdD"
    )
    # Sorted by all that describes an edge, so that sums run in the same order every time.
    order = np.lexsort((source, length, target))
    target, source = target[order].astype(np.int64), source[order].astype(np.int64)
    length, vector = length[order], vector[order]
    is_lattice = np.zeros(len(length), dtype=bool)
    angles = np.zeros((len(length), 0))
    if config.use_angle:
        angles = angular_surroundings(target, vector / length[:, None], length, config)
    if config.use_lattice:
        atoms = np.repeat(np.arange(len(crystal.numbers)), 3)
        source, target = np.append(source, atoms), np.append(target, atoms)
        length = np.append(length, np.tile(reduced_lattice(crystal.cell), len(crystal.numbers)))
        is_lattice = np.append(is_lattice, np.ones(len(atoms), dtype=bool))
        angles = np.append(angles, np.zeros((len(atoms), angles.shape[1])), axis=0)
    arrays = crystal.numbers, source, target, length, is_lattice, angles.astype(np.float32)
    return Graph(*map(torch.from_numpy, arrays))


def reduced_lattice(cell: Floats) -> Floats:
    """Return the lengths (Å, ascending) of the shortest three vectors that span the lattice.

    A lattice has many cells; the lengths of the reduced one do not depend on which was given. They
    do depend on the size of the cell: a supercell has longer ones.
    """
    reduced, _ = need("ase.geometry", "crystal").minkowski_reduce(cell)
    return np.sort(np.linalg.norm(reduced, axis=1))


def angular_surroundings(
    target: NDArray[np.int64], direction: Floats, length: Floats, config: GraphConfig
) -> Floats:
    """Describe each edge by its angles with the other edges of the same atom (edges x n_angles).

    The angles are spread over Gaussians, and each counts less the longer the other edge is, down
    to nothing at the cutoff, so that the description changes smoothly as atoms move. `target` must
    be sorted.
    """
    centres = np.linspace(0, np.pi, config.n_angles)
    width = np.pi / config.n_angles
    weight = (np.cos(np.pi * length / config.cutoff) + 1) / 2
    described = np.zeros((len(length), config.n_angles))
    bounds = np.flatnonzero(np.diff(target, prepend=-1, append=-1))
    for first, last in pairwise(bounds):
        edges = slice(first, last)
        # Parallel edges are common in crystals and rounding makes their cosine 1.0000000000000002,
        # whose arccos is NaN: one such NaN on one rank spreads to every weight on every rank.
        cosine = np.clip(direction[edges] @ direction[edges].T, -1.0, 1.0)
        other = weight[edges] * (1 - np.eye(len(cosine)))
        spread = np.exp(-(((np.arccos(cosine)[:, :, None] - centres) / width) ** 2))
        described[edges] = np.log1p(np.einsum("ij,ijk->ik", other, spread))
    return described


def collate(samples: Sequence[tuple[Graph, Floats]]) -> Batch:
    """Join graphs and their labels (one per target).

    Floats come in torch's default type. No samples are fine.
    """
    graphs = [graph for graph, _ in samples] or [NO_ATOMS]
    sizes = torch.tensor([len(graph.numbers) for graph in graphs])
    offsets = (sizes.cumsum(0) - sizes).tolist()
    real = torch.get_default_dtype()

    def joined(name: str) -> torch.Tensor:
        return torch.cat([getattr(graph, name) for graph in graphs])

    def shifted(name: str) -> torch.Tensor:
        pairs = zip(graphs, offsets, strict=True)
        return torch.cat([getattr(graph, name) + offset for graph, offset in pairs])

    return Batch(
        numbers=joined("numbers"),
        source=shifted("source"),
        target=shifted("target"),
        length=joined("length").to(real),
        is_lattice=joined("is_lattice"),
        angles=joined("angles").to(real),
        crystal=torch.repeat_interleave(torch.arange(len(graphs)), sizes),
        labels=torch.tensor(np.array([label for _, label in samples]), dtype=real),
    )


_INDICES, _NUMBERS = torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.float64)
NO_ATOMS = Graph(
    _INDICES, _INDICES, _INDICES, _NUMBERS, torch.zeros(0, dtype=torch.bool), torch.zeros(0, 0)
)
