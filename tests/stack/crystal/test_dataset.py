"""From files and lists to checked crystals in three sets."""

from __future__ import annotations

import math
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from ase import Atoms
from ase.build import bulk
from ase.io import write
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.stack.crystal.dataset import (
    checked,
    dcdft,
    digest,
    read_extxyz,
    split_by_formula,
)
from ddpdoctor.stack.crystal.graph import Crystal, GraphConfig, as_crystal
from ddpdoctor.stack.crystal.sharing import build_graphs
from ddpdoctor.stack.errors import CheckpointError, DataError
from ddpdoctor.stack.process_group import World

LONE = World(0, 0, 1, torch.device("cpu"), None)


def crystals(sizes: list[int]) -> list[Crystal]:
    """So many crystals of each formula."""
    cell = np.eye(3)
    return [
        Crystal(np.array([formula + 1]), np.zeros((1, 3)), cell)
        for formula, size in enumerate(sizes)
        for _ in range(size)
    ]


@given(st.lists(st.integers(1, 9), min_size=3, max_size=60), st.integers(0, 1000))
def test_a_split_holds_every_crystal_once_and_no_formula_twice(sizes: list[int], seed: int) -> None:
    given_crystals = crystals(sizes)
    split = split_by_formula(given_crystals, seed)
    parts = (split.train, split.validation, split.test)
    assert sorted(chain(*parts)) == list(range(len(given_crystals)))
    formulas = [{given_crystals[i].formula for i in part} for part in parts]
    assert all(formulas)
    assert all(one.isdisjoint(other) for one, other in combinations(formulas, 2))


@given(st.lists(st.integers(1, 6), min_size=3, max_size=9), st.integers(0, 1000))
def test_the_validation_set_is_as_near_to_its_size_as_whole_formulas_allow(
    sizes: list[int], seed: int
) -> None:
    split = split_by_formula(crystals(sizes), seed)
    wanted = int(0.1 * sum(sizes))
    possible = {sum(chosen) for n in range(1, len(sizes) - 1) for chosen in combinations(sizes, n)}
    best = min(abs(size - wanted) for size in possible)
    assert abs(len(split.validation) - wanted) == best


@pytest.mark.parametrize(
    ("total", "documented"),
    [(12186, (9748, 1218, 1220)), (3953, (3162, 395, 396)), (71, (56, 7, 8))],
)
def test_without_polymorphs_the_sizes_are_the_documented_ones(
    total: int, documented: tuple[int, int, int]
) -> None:
    cell, origin = np.eye(3), np.zeros((1, 3))
    different = [
        Crystal(np.array([i % 118 + 1, i // 118 + 1, i // 118 + 1]), origin, cell)
        for i in range(total)
    ]
    split = split_by_formula(different, seed=42)
    sizes = len(split.train), len(split.validation), len(split.test)
    assert sizes == documented


def test_real_polymorphs_still_allow_the_documented_sizes(elasticity: Path) -> None:
    strucs, labels = read_extxyz(elasticity, ["shear_modulus"])
    found, _ = checked(strucs, labels, log10=True)
    split = split_by_formula(found, seed=42)
    assert (len(split.train), len(split.validation), len(split.test)) == (409, 51, 52)


def test_a_seed_is_a_split() -> None:
    many = crystals([1] * 50)
    assert split_by_formula(many, 1) == split_by_formula(many, 1)
    assert split_by_formula(many, 1) != split_by_formula(many, 2)


def test_two_formulas_cannot_be_split() -> None:
    with pytest.raises(DataError, match="2 different formulas"):
        split_by_formula(crystals([20, 20]), 0)


def test_the_embedded_data_are_71_elements_and_their_bulk_moduli() -> None:
    strucs, labels = dcdft()
    found, values = checked(strucs, labels, log10=False)
    assert len({crystal.formula for crystal in found}) == 71
    moduli = dict(zip((crystal.name for crystal in found), 10 ** values[:, 0], strict=True))
    assert moduli["Cs"] == min(moduli[name] for name in ("Cs", "Cu", "W", "C"))
    assert moduli["C"] == pytest.approx(208, abs=2)  # graphite, not diamond


COPPER = bulk("Cu")
BAD_LABELS = {
    "no structures": ([], []),
    "2 structures, but 1 labels": ([COPPER, COPPER], [1.0]),
    "label 1 is nan, not a finite number": ([COPPER, COPPER], [1.0, math.nan]),
    "label 0 is inf, not a finite": ([COPPER], [math.inf]),
    "label 0 is 'stiff', not a number": ([COPPER], ["stiff"]),
    "label 0 is None, not a number": ([COPPER], [None]),
    r"label 0 is array\(.*, not a number": ([COPPER], [np.zeros((30, 30))]),
    "structure 1 has no atoms": ([COPPER, Atoms(cell=[1, 1, 1], pbc=True)], [1.0, 1.0]),
}


@pytest.mark.parametrize(("complaint", "given"), BAD_LABELS.items(), ids=BAD_LABELS.keys())
def test_structures_and_labels_that_cannot_be_used_are_refused(
    complaint: str, given: tuple[list[object], list[object]]
) -> None:
    with pytest.raises(DataError, match=complaint):
        checked(*given, log10=False)


def test_log10_needs_positive_labels() -> None:
    _, values = checked([COPPER], [100], log10=True)
    assert values.tolist() == [[2.0]]
    with pytest.raises(DataError, match=r"label 0 is 0\.0, not a positive number"):
        checked([COPPER], [0], log10=True)


def labelled(path: Path, *moduli: float) -> Path:
    structures = []
    for modulus in moduli:
        atoms = COPPER.repeat((1, 1, 2))
        atoms.info["modulus"] = modulus
        structures.append(atoms)
    write(path, structures, format="extxyz")
    return path


def test_several_labels_of_a_structure_are_one_row() -> None:
    _, values = checked([COPPER, COPPER], [[1, 2], (3, 4)], log10=False)
    assert values.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(DataError, match="label 1 has 1 values, label 0 has 2"):
        checked([COPPER, COPPER], [[1, 2], [3]], log10=False)
    with pytest.raises(DataError, match="label 0 is nan"):
        checked([COPPER], [[1, float("nan")]], log10=False)


def test_a_property_is_read_with_its_structure(tmp_path: Path) -> None:
    strucs, labels = read_extxyz(labelled(tmp_path / "a.extxyz", 1.5, 2.5), ["modulus"])
    assert labels == [[1.5], [2.5]]
    assert [len(atoms) for atoms in strucs] == [2, 2]


def test_an_energy_is_found_although_ase_moves_it(tmp_path: Path) -> None:
    (tmp_path / "a.extxyz").write_text(
        '1\nLattice="3 0 0 0 3 0 0 0 3" Properties=species:S:1:pos:R:3 energy=-1.25\nCu 0 0 0\n'
    )
    assert read_extxyz(tmp_path / "a.extxyz", ["energy"])[1] == [[-1.25]]


def test_a_missing_property_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    path = labelled(tmp_path / "a.extxyz", 1.5)
    with pytest.raises(DataError, match=r"structure 0 of .* no property 'shear'; it has: modulus"):
        read_extxyz(path, ["shear"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file .*none\.extxyz"):
        read_extxyz(tmp_path / "none.extxyz", ["modulus"])


HEADER = 'Lattice="3 0 0 0 3 0 0 0 3" Properties=species:S:1:pos:R:3 m=1\n'
CORRUPT = {
    "empty": "",
    "cut off": f"5\n{HEADER}Cu 0 0 0\n",
    "no number of atoms": "Cu 0 0 0\nCu 0 0 0\n",
    "letters for coordinates": f"1\n{HEADER}Cu a b c\n",
    "binary": "\x00\x01\x02" * 50,
    "no element": f"1\n{HEADER}Qq 0 0 0\n",
}


@pytest.mark.parametrize("content", CORRUPT.values(), ids=CORRUPT.keys())
def test_a_corrupt_file_is_one_clear_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.extxyz"
    path.write_text(content)
    with pytest.raises(DataError, match=r"a\.extxyz") as caught:
        read_extxyz(path, ["m"])
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_not_text_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "a.extxyz"
    path.write_bytes(bytes(range(256)) * 20)
    with pytest.raises(DataError, match="not a whole extended XYZ file"):
        read_extxyz(path, ["m"])


def some_crystals() -> list[Crystal]:
    return [as_crystal(atoms) for atoms in (COPPER, bulk("NaCl", "rocksalt", a=5.6), bulk("Ti"))]


@pytest.mark.parametrize("use_angle", [False, True])
def test_cached_graphs_are_those_that_are_built(tmp_path: Path, use_angle: bool) -> None:
    config = GraphConfig(cutoff=4.0, use_angle=use_angle, use_lattice=True)
    fresh = build_graphs(some_crystals(), config, None, LONE)
    for _ in ("written", "read"):
        cached = build_graphs(some_crystals(), config, tmp_path, LONE)
        for ours, theirs in zip(cached, fresh, strict=True):
            for name, tensor in vars(ours).items():
                assert torch.equal(tensor, getattr(theirs, name))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cache_serves_only_what_it_was_built_from(tmp_path: Path) -> None:
    all_of_them = some_crystals()
    build_graphs(all_of_them, GraphConfig(cutoff=4.0), tmp_path, LONE)
    build_graphs(all_of_them, GraphConfig(cutoff=5.0), tmp_path, LONE)
    build_graphs(all_of_them[:2], GraphConfig(cutoff=4.0), tmp_path, LONE)
    all_of_them[1].positions[0] += 0.01
    build_graphs(all_of_them, GraphConfig(cutoff=4.0), tmp_path, LONE)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_cache_that_the_disk_has_lost_is_named(tmp_path: Path) -> None:
    build_graphs(some_crystals(), GraphConfig(cutoff=4.0), tmp_path, LONE)
    [cache] = tmp_path.iterdir()
    cache.write_bytes(b"")
    with pytest.raises(CheckpointError, match=cache.name):
        build_graphs(some_crystals(), GraphConfig(cutoff=4.0), tmp_path, LONE)


def test_a_digest_is_the_same_in_every_process() -> None:
    # A literal, as another process would have another salt for `hash`.
    assert digest(crystals([1, 2]), "settings", b"labels")[:16] == "8e6836dcda6eb5e1"
