"""What a prediction may not depend on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ase import Atoms
from ase.build import bulk
from scipy.spatial.transform import Rotation

from ddpdoctor.stack.config import parse
from ddpdoctor.stack.crystal.graph import GraphConfig, as_crystal, build_graph, collate
from ddpdoctor.stack.crystal.model import CrystalTransformer, ModelConfig
from ddpdoctor.stack.errors import ConfigError

KINDS = {
    "distances": GraphConfig(cutoff=4.5),
    "angles": GraphConfig(cutoff=4.5, use_angle=True),
    "lattice": GraphConfig(cutoff=4.5, use_lattice=True),
    "both": GraphConfig(cutoff=4.5, use_lattice=True, use_angle=True),
}
all_kinds = pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())


def crystal() -> Atoms:
    """Rutile-like, a little out of shape, so that no symmetry hides a mistake."""
    atoms = Atoms("Ti2O4", cell=[[4.6, 0, 0], [0.3, 4.7, 0], [0.1, -0.2, 3.0]], pbc=True)
    atoms.set_scaled_positions(np.random.default_rng(0).random((6, 3)))
    return atoms


def model(config: GraphConfig) -> CrystalTransformer:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    return CrystalTransformer(config, ModelConfig(width=16, heads=2, n_radial=8)).eval()


def prediction(config: GraphConfig, *structures: Atoms) -> list[float]:
    graphs = [build_graph(as_crystal(structure), config) for structure in structures]
    predicted: list[float] = model(config)(collate([(graph, [0.0]) for graph in graphs]))[
        :, 0
    ].tolist()
    return predicted


def moved(atoms: Atoms) -> Atoms:
    atoms.positions += [0.7, -31.0, 5.5]
    return atoms


def wrapped(atoms: Atoms) -> Atoms:
    atoms.positions += [2.0, 1.0, 0.5]
    atoms.wrap()
    return atoms


def turned(atoms: Atoms) -> Atoms:
    rotation = Rotation.random(rng=np.random.default_rng(1)).as_matrix()
    atoms.set_cell(atoms.cell.array @ rotation.T, scale_atoms=True)
    return atoms


def mirrored(atoms: Atoms) -> Atoms:
    atoms.set_cell(atoms.cell.array * [1, 1, -1], scale_atoms=True)
    return atoms


def renumbered(atoms: Atoms) -> Atoms:
    return atoms[[3, 0, 5, 1, 4, 2]]


def with_another_cell_of_the_same_lattice(atoms: Atoms) -> Atoms:
    atoms.set_cell(np.array([[1, 1, 0], [0, 1, 0], [0, -2, 1]]) @ atoms.cell.array)
    return atoms


@pytest.mark.parametrize(
    "change",
    [moved, wrapped, turned, mirrored, renumbered, with_another_cell_of_the_same_lattice],
)
@all_kinds
def test_a_crystal_that_is_the_same_has_the_same_prediction(config: GraphConfig, change) -> None:
    assert prediction(config, change(crystal())) == pytest.approx(
        prediction(config, crystal()), rel=1e-5
    )


@pytest.mark.parametrize("kind", ["distances", "angles"])
def test_a_supercell_has_the_prediction_of_its_cell(kind: str) -> None:
    config = KINDS[kind]
    [cell] = prediction(config, crystal())
    assert prediction(config, crystal().repeat((2, 1, 3))) == pytest.approx([cell], rel=1e-5)


def test_with_use_lattice_a_supercell_is_another_crystal() -> None:
    config = KINDS["lattice"]
    [cell] = prediction(config, crystal())
    assert prediction(config, crystal().repeat((2, 2, 2))) != pytest.approx([cell], rel=1e-5)


@all_kinds
def test_a_strained_crystal_is_another_one(config: GraphConfig) -> None:
    strained = crystal()
    strained.set_cell(strained.cell.array * 1.02, scale_atoms=True)
    assert prediction(config, strained) != pytest.approx(prediction(config, crystal()), rel=1e-5)


@pytest.mark.parametrize("kind", ["distances", "angles"])
def test_a_neighbour_that_crosses_the_cutoff_makes_no_jump(kind: str) -> None:
    # The third neighbours of iron stand at a * sqrt(2).
    inside, outside = (bulk("Fe", a=4.5 / 2**0.5 + shift) for shift in (-1e-7, 1e-7))
    config = KINDS[kind]
    edges = [len(build_graph(as_crystal(atoms), config).length) for atoms in (inside, outside)]
    assert edges == [26, 14]
    one, other = prediction(config, inside, outside)
    assert one == pytest.approx(other, rel=1e-6)


def test_angles_tell_apart_what_distances_cannot() -> None:
    # Two chains of the same distances: straight, and bent to a right angle at every second atom.
    straight = Atoms("H2", [[0, 0, 0], [1, 0, 0]], cell=[2, 20, 20], pbc=True)
    bent = Atoms("H2", [[0, 0, 0], [2**-0.5, 2**-0.5, 0]], cell=[2**0.5, 20, 20], pbc=True)
    near, angles = GraphConfig(cutoff=1.2), GraphConfig(cutoff=1.2, use_angle=True)
    one, other = prediction(near, straight, bent)
    assert one == pytest.approx(other, rel=1e-9)
    one, other = prediction(angles, straight, bent)
    assert one != pytest.approx(other, rel=1e-5)


@all_kinds
def test_a_prediction_does_not_depend_on_its_batch(config: GraphConfig) -> None:
    many = [crystal(), bulk("Cu"), bulk("NaCl", "rocksalt", a=5.64)]
    assert prediction(config, *many) == pytest.approx(
        [prediction(config, one)[0] for one in many], rel=1e-12
    )


@all_kinds
def test_every_parameter_takes_part(config: GraphConfig) -> None:
    # One that did not would be an error under DDP, in the second step.
    network = model(config)
    graph = build_graph(as_crystal(crystal()), config)
    for batch in (collate([(graph, [0.0])]), collate([])):
        network.zero_grad(set_to_none=True)
        network(batch).sum().backward()
        assert [name for name, p in network.named_parameters() if p.grad is None] == []


def test_an_atom_with_nobody_near_has_a_finite_prediction_and_gradient() -> None:
    config = GraphConfig(cutoff=3.0)
    network = model(config)
    graph = build_graph(as_crystal(bulk("Cs", "sc", a=9.0)), config)
    network(collate([(graph, [0.0])])).sum().backward()
    assert all(p.grad.isfinite().all() for p in network.parameters())


def test_a_width_that_the_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigError, match="width 10 is not a multiple of heads 4"):
        parse(ModelConfig, {"width": 10})
