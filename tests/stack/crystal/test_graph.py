"""Graphs of crystals, compared with what is known by other means."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from ase import Atoms
from ase.build import bulk, molecule
from ase.neighborlist import neighbor_list
from pymatgen.core import Lattice, Structure
from pymatgen.io.ase import AseAtomsAdaptor

from ddpdoctor.stack.crystal.graph import (
    Crystal,
    GraphConfig,
    as_crystal,
    build_graph,
    collate,
    reduced_lattice,
)
from ddpdoctor.stack.errors import DataError

SALT = bulk("NaCl", "rocksalt", a=5.64)


@pytest.mark.parametrize("cutoff", [2.0, 4.0, 7.5])
@pytest.mark.parametrize(
    "atoms", [SALT, bulk("Ti"), bulk("Cu").repeat((1, 2, 3)), bulk("Fe")], ids=str
)
def test_edges_are_those_that_ase_finds(atoms: Atoms, cutoff: float) -> None:
    graph = build_graph(as_crystal(atoms), GraphConfig(cutoff=cutoff))
    target, source, length = neighbor_list("ijd", atoms, cutoff)
    ours = zip(graph.target.tolist(), graph.source.tolist(), graph.length.tolist(), strict=True)
    theirs = zip(target.tolist(), source.tolist(), length.tolist(), strict=True)
    np.testing.assert_allclose(sorted(ours), sorted(theirs), atol=1e-9)


def test_pymatgen_and_ase_give_the_same_graph() -> None:
    structure = AseAtomsAdaptor.get_structure(SALT)
    config = GraphConfig(use_angle=True, use_lattice=True)
    ours, theirs = (build_graph(as_crystal(s), config) for s in (SALT, structure))
    for name in ("numbers", "source", "target", "is_lattice"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
    torch.testing.assert_close(ours.length, theirs.length)
    torch.testing.assert_close(ours.angles, theirs.angles)


def test_an_atom_with_nobody_near_has_no_edges() -> None:
    graph = build_graph(
        as_crystal(bulk("Cs", "sc", a=9.0)), GraphConfig(cutoff=5.0, use_angle=True)
    )
    assert graph.length.shape == (0,)
    assert graph.angles.shape == (0, 12)


def test_parallel_edges_have_no_angle_that_is_nan() -> None:
    # The cosine of an edge with one that goes on in its direction rounds to more than 1 in some of
    # these, and the arccos of that is NaN.
    for a in np.linspace(3.0, 4.0, 20):
        graph = build_graph(as_crystal(bulk("Cu", a=a)), GraphConfig(cutoff=6.0, use_angle=True))
        assert graph.angles.isfinite().all()


def test_angles_of_rock_salt_are_right_angles_and_straight_ones() -> None:
    # Cut off so that only the six nearest count: each edge sees four at 90 degrees and one at 180.
    config = GraphConfig(cutoff=3.0, use_angle=True, n_angles=7)
    graph = build_graph(as_crystal(SALT), config)
    weight = (math.cos(math.pi * 2.82 / 3.0) + 1) / 2
    centres, width = np.linspace(0, np.pi, 7), np.pi / 7
    at = {angle: np.exp(-(((angle - centres) / width) ** 2)) for angle in (np.pi / 2, np.pi)}
    expected = np.log1p(weight * (4 * at[np.pi / 2] + at[np.pi]))
    np.testing.assert_allclose(graph.angles, np.tile(expected, (12, 1)), atol=1e-6)


def test_lattice_edges_do_not_depend_on_which_cell_was_given() -> None:
    cell = np.array(bulk("Ti").cell)
    other = np.array([[1, 0, 0], [3, 1, 0], [-2, 5, 1]]) @ cell
    np.testing.assert_allclose(reduced_lattice(other), reduced_lattice(cell), atol=1e-9)
    graph = build_graph(as_crystal(bulk("Ti")), GraphConfig(cutoff=3.5, use_lattice=True))
    lattice = graph.is_lattice
    assert lattice.sum() == 6
    assert graph.source[lattice].tolist() == graph.target[lattice].tolist() == [0, 0, 0, 1, 1, 1]
    assert graph.length[lattice][:3].tolist() == reduced_lattice(cell).tolist()


def test_polymorphs_share_a_formula() -> None:
    double = as_crystal(SALT.repeat((2, 1, 1)))
    assert double.formula == as_crystal(SALT).formula == ((11, 1), (17, 1))
    assert double.name == "NaCl"
    assert as_crystal(bulk("Ti")).name == "Ti"


def test_a_batch_is_its_graphs_side_by_side() -> None:
    config = GraphConfig(cutoff=4.0, use_angle=True)
    salt, iron = (build_graph(as_crystal(a), config) for a in (SALT, bulk("Fe")))
    batch = collate([(salt, [1.5]), (iron, [2.5])])
    assert len(batch) == 2
    assert batch.numbers.tolist() == [11, 17, 26]
    assert batch.crystal.tolist() == [0, 0, 1]
    assert batch.labels.tolist() == [[1.5], [2.5]]
    assert set(batch.source[len(salt.source) :].tolist()) == {2}
    assert batch.angles.shape == (len(batch.length), 12)


def test_a_batch_may_be_empty() -> None:
    batch = collate([])
    assert len(batch) == len(batch.numbers) == len(batch.length) == 0


class NotAStructure:
    pass


REFUSED = {
    "neither a pymatgen": NotAStructure(),
    "no atoms": Atoms(cell=[1, 1, 1], pbc=True),
    "periodic in three": molecule("H2O"),
    "periodic in three dimensions": Atoms("H", cell=[1, 1, 1], pbc=[True, True, False]),
    "no cell that": Atoms("H", cell=[1, 1, 0], pbc=True),
    "not finite": Atoms("H", positions=[[0, 0, math.nan]], cell=[1, 1, 1], pbc=True),
    "unknown element": Atoms("X", cell=[1, 1, 1], pbc=True),
    "mixed occupation": Structure(Lattice.cubic(3), [{"Cu": 0.5, "Au": 0.5}], [[0, 0, 0]]),
}


@pytest.mark.parametrize(("complaint", "structure"), REFUSED.items(), ids=REFUSED.keys())
def test_what_is_no_crystal_is_refused(complaint: str, structure: object) -> None:
    with pytest.raises(DataError, match=complaint):
        as_crystal(structure)


def test_a_crystal_is_made_of_copies() -> None:
    atoms = SALT.copy()
    crystal = as_crystal(atoms)
    atoms.positions += 1
    assert isinstance(crystal, Crystal)
    np.testing.assert_array_equal(crystal.positions, SALT.positions)
