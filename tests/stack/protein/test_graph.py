"""The geometry of a backbone, and the masks."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import gemmi
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from ddpdoctor.stack.config import parse
from ddpdoctor.stack.errors import ConfigError
from ddpdoctor.stack.protein.backbone import UNKNOWN, Backbone, read_backbones
from ddpdoctor.stack.protein.graph import (
    MASK,
    N_OFFSETS,
    Graph,
    GraphConfig,
    MaskConfig,
    MaskedChains,
    build_graph,
    collate,
    composition,
    draw_fixed_mask,
    draw_mask,
    frames_of,
    torsions_of,
)
from ddpdoctor.stack.protein.synthetic import place, synthetic_backbones
from tests.stack.protein.chains import backbone, sample

CONFIG = GraphConfig()


def angles_of(chain: Backbone) -> np.ndarray:
    """Phi, psi and omega (radians) of each residue, from their sines and cosines."""
    sines = torsions_of(chain).reshape(-1, 3, 2)
    return np.arctan2(sines[..., 0], sines[..., 1])


@given(arrays(float, (2, 9), elements=st.floats(-3.1, 3.1)))
def test_a_chain_that_is_placed_has_the_torsions_that_were_asked_for(torsions: np.ndarray) -> None:
    phi, psi = torsions
    [positions] = place(phi[None], psi[None])
    angles = angles_of(Backbone("a", "A", np.zeros(9, np.int64), positions))
    np.testing.assert_allclose(angles[1:, 0], phi[1:], atol=1e-9)
    np.testing.assert_allclose(angles[:-1, 1], psi[:-1], atol=1e-9)
    np.testing.assert_allclose(np.abs(angles[1:, 2]), np.pi, atol=1e-9)
    lengths = np.linalg.norm(np.diff(positions.reshape(-1, 3), axis=0), axis=1)
    np.testing.assert_allclose(lengths, ([1.458, 1.525, 1.329] * 9)[:-1], atol=1e-9)


def test_an_ideal_helix_rises_by_an_angstrom_and_a_half_a_residue() -> None:
    phi, psi = np.radians([-57.0] * 30), np.radians([-47.0] * 30)
    [positions] = place(phi[None], psi[None])
    rise = np.linalg.norm(positions[28, 1] - positions[1, 1]) / 27
    assert rise == pytest.approx(1.5, abs=0.1)


def test_the_torsions_of_a_real_chain_are_those_of_gemmi(pdb: Path) -> None:
    path = pdb / "1aki.pdb"
    [chain] = read_backbones(path)
    polymer = gemmi.read_structure(str(path))[0][0].get_polymer()
    ours = angles_of(chain)
    for number in range(1, len(polymer) - 1):
        before, here, after = polymer[number - 1], polymer[number], polymer[number + 1]
        n, ca, c = (here[name][0].pos for name in ("N", "CA", "C"))
        expected = (
            gemmi.calculate_dihedral(before["C"][0].pos, n, ca, c),
            gemmi.calculate_dihedral(n, ca, c, after["N"][0].pos),
        )
        np.testing.assert_allclose(ours[number, :2], expected, atol=1e-6)


def test_frames_are_orthonormal_and_right_handed() -> None:
    frames = frames_of(backbone().positions)
    np.testing.assert_allclose(frames.transpose(0, 2, 1) @ frames, [np.eye(3)] * 12, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(frames), 1.0)


@given(st.integers(0, 2**32 - 1), st.tuples(*[st.floats(-50, 50)] * 3))
@settings(max_examples=25)
def test_a_chain_that_is_moved_and_turned_is_the_same_graph(
    seed: int, shift: tuple[float, float, float]
) -> None:
    chain = backbone()
    turn = Rotation.random(rng=np.random.default_rng(seed)).as_matrix()
    moved = replace(chain, positions=chain.positions @ turn.T + np.array(shift))
    for name, ours, theirs in pairs(build_graph(moved, CONFIG), build_graph(chain, CONFIG)):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0, msg=name)


def test_the_mirror_image_of_a_chain_is_another_graph() -> None:
    chain = backbone()
    mirrored = build_graph(replace(chain, positions=chain.positions * [1, 1, -1]), CONFIG)
    graph = build_graph(chain, CONFIG)
    assert torch.allclose(mirrored.length, graph.length)
    assert not torch.allclose(mirrored.orientation, graph.orientation, atol=0.1)


def test_neighbours_are_all_those_within_the_cutoff_and_none_is_its_own() -> None:
    chain = backbone(length=30)
    graph = build_graph(chain, GraphConfig(cutoff=8.0))
    centres = chain.positions[:, 1]
    near = {
        (i, j)
        for i in range(30)
        for j in range(30)
        if i != j and np.linalg.norm(centres[i] - centres[j]) < 8.0
    }
    assert set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)) == near
    edge = graph.offset[(graph.source == 3) & (graph.target == 5)]
    assert edge.tolist() == [14]  # two before, of sixteen either way


def test_the_way_along_a_broken_chain_is_unknown() -> None:
    chain = backbone(length=12)
    positions = chain.positions.copy()
    positions[6:] += 2 * (positions[6, 0] - positions[5, 2])
    graph = build_graph(replace(chain, positions=positions), CONFIG)
    across = (graph.source < 6) != (graph.target < 6)
    assert (graph.offset[across] == N_OFFSETS - 1).all()
    assert (graph.offset[~across] != N_OFFSETS - 1).all()
    assert across.any()
    torsions = graph.torsions.reshape(12, 3, 2)
    assert (torsions[6, 0] == 0).all()
    assert (torsions[5, 1] == 0).all()
    assert (torsions[5, 0] != 0).any()


def test_the_mask_of_a_chain_follows_from_seed_epoch_and_number_alone() -> None:
    graphs = [build_graph(chain, CONFIG) for chain in synthetic_backbones(4, 0)]
    one, other = (MaskedChains(graphs, MaskConfig(), seed=7) for _ in range(2))
    one.set_epoch(3)
    other.set_epoch(3)
    forwards = [one[i][1].tolist() for i in range(4)]
    backwards = [other[i][1].tolist() for i in (3, 2, 1, 0)]
    assert forwards == backwards[::-1]
    other.set_epoch(4)
    assert [other[i][1].tolist() for i in range(4)] != forwards
    assert MaskedChains(graphs, MaskConfig(), seed=8)[0][1].tolist() != one[0][1].tolist()


def test_about_as_many_residues_are_masked_as_was_asked_for() -> None:
    graphs = [build_graph(chain, CONFIG) for chain in synthetic_backbones(60, 0)]
    chains = MaskedChains(graphs, MaskConfig(mask_ratio=0.3), seed=0)
    masks = torch.cat([chains[i][1] for i in range(60)])
    assert masks.double().mean().item() == pytest.approx(0.3, abs=0.03)


def test_an_unknown_residue_is_never_masked_and_a_fixed_mask_is_never_empty() -> None:
    chain = backbone(length=10)
    chain.residues[:9] = UNKNOWN
    graph = build_graph(chain, CONFIG)
    generator = np.random.default_rng(0)
    for seed in range(20):
        assert not draw_mask(graph, MaskConfig(mask_ratio=0.9), generator)[:9].any()
        assert draw_fixed_mask(graph, MaskConfig(mask_ratio=0.01), [seed]).sum() == 1


@pytest.mark.parametrize("ratio", [0, 1, 1.5, -0.1, float("nan")])
def test_a_mask_ratio_that_cannot_be_is_refused(ratio: float) -> None:
    with pytest.raises(ConfigError, match="mask_ratio"):
        parse(MaskConfig, {"mask_ratio": ratio})


def test_a_batch_hides_what_is_masked_and_keeps_the_chains_apart() -> None:
    (one, mask), (two, other) = sample(0), sample(1, length=20)
    batch = collate([(one, mask), (two, other)])
    assert (len(batch), batch.weight) == (2, int(mask.sum() + other.sum()))
    both = torch.cat([one.residues, two.residues])
    hidden = torch.cat([mask, other])
    assert (batch.residues[hidden] == MASK).all()
    assert torch.equal(batch.residues[~hidden], both[~hidden])
    assert torch.equal(batch.labels, both[hidden])
    assert torch.equal(batch.chain, (batch.masked >= 12).long())
    assert not ((batch.source < 12) != (batch.target < 12)).any()


def test_a_batch_may_hold_nothing() -> None:
    batch = collate([])
    assert (len(batch), batch.weight, len(batch.residues)) == (0, 0, 0)


def test_a_composition_has_no_zero() -> None:
    shares = composition([build_graph(backbone(), CONFIG)])
    assert shares.sum().item() == pytest.approx(1)
    assert (shares > 0).all()


def test_residues_of_synthetic_chains_depend_on_their_structure() -> None:
    graphs = [build_graph(chain, CONFIG) for chain in synthetic_backbones(80, 0)]
    residues = torch.cat([graph.residues for graph in graphs])
    cosine_of_psi = torch.cat([graph.torsions[:, 3] for graph in graphs])
    is_helix = cosine_of_psi > 0.5
    helix, rest = (torch.bincount(residues[part], minlength=20) for part in (is_helix, ~is_helix))
    distance = (helix / helix.sum() - rest / rest.sum()).abs().sum() / 2
    assert distance > 0.5, "shares of residues in helices and outside hardly differ"


def test_synthetic_chains_are_the_same_for_the_same_seed() -> None:
    one, other, third = (synthetic_backbones(3, seed) for seed in (1, 1, 2))
    for ours, theirs in zip(one, other, strict=True):
        assert np.array_equal(ours.residues, theirs.residues)
        assert np.array_equal(ours.positions, theirs.positions)
    assert not np.array_equal(one[0].positions[:8], third[0].positions[:8])


def pairs(one: Graph, other: Graph) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    return [(f.name, getattr(one, f.name), getattr(other, f.name)) for f in fields(Graph)]
