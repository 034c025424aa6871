"""What is read from files of the PDB, and what is refused."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import gemmi
import numpy as np
import pytest

from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.protein.backbone import AMINO_ACIDS, UNKNOWN, find_files, read_backbones
from tests.stack.protein.chains import NAMES, backbone, pdb_text, write_pdb

# Residues of each protein chain, as the PDB's own pages give them.
CHAINS = {
    "1a8o": [70],
    "1aki": [129],
    "1dix": [208],
    "1f2n": [189, 189, 212],
    "1k6p": [99, 99],
    "1l2y": [20],
    "1o1z": [226],
    "2beg": [26] * 5,
    "3o5r": [128],
    "5h73": [363],
    "5zng": [79, 62],
    "7ddo": [597, 194],
}


@pytest.mark.parametrize("entry", CHAINS)
def test_the_protein_chains_of_real_entries_are_read(pdb: Path, entry: str) -> None:
    found = read_backbones(pdb / f"{entry}.pdb")
    assert [len(chain.residues) for chain in found] == CHAINS[entry]
    assert {chain.entry for chain in found} == {entry}


def test_a_real_sequence_is_read_in_its_order(pdb: Path) -> None:
    [chain] = read_backbones(pdb / "1l2y.pdb")
    assert "".join(AMINO_ACIDS[i] for i in chain.residues) == "NLYIQWLKDGGPSSGRPPPS"


def test_an_entry_that_is_rna_alone_is_refused(pdb: Path) -> None:
    with pytest.raises(DataError, match=r"4p5j\.pdb holds no protein chain of 8 residues or more$"):
        read_backbones(pdb / "4p5j.pdb")


def test_a_file_gives_back_the_chain_that_was_written(tmp_path: Path) -> None:
    chain = backbone(length=20)
    [read] = read_backbones(write_pdb(tmp_path / "a.pdb", chain))
    assert read.residues.tolist() == chain.residues.tolist()
    np.testing.assert_allclose(read.positions, chain.positions, atol=5e-4)
    assert (read.name, read.segments.tolist()) == ("a A", [0] * 20)


def test_mmcif_and_packed_files_are_read_as_well(tmp_path: Path) -> None:
    chain = backbone(length=20)
    plain = write_pdb(tmp_path / "a.pdb", chain)
    (tmp_path / "b.pdb.gz").write_bytes(gzip.compress(plain.read_bytes()))
    structure = gemmi.read_structure(str(plain))
    structure.setup_entities()
    structure.make_mmcif_document().write_file(str(tmp_path / "c.cif"))
    for name in ("b.pdb.gz", "c.cif"):
        [read] = read_backbones(tmp_path / name)
        assert read.residues.tolist() == chain.residues.tolist()


def test_a_modified_residue_counts_as_what_it_was_made_of(tmp_path: Path) -> None:
    chain = backbone(length=10)
    names = [NAMES[residue] for residue in chain.residues]
    names[3:5] = ["MSE", "UNK"]
    (tmp_path / "a.pdb").write_text(pdb_text(chain, names))
    [read] = read_backbones(tmp_path / "a.pdb")
    assert read.residues[3:5].tolist() == [AMINO_ACIDS.index("M"), UNKNOWN]


def test_a_residue_without_a_frame_is_left_out_and_breaks_the_chain(tmp_path: Path) -> None:
    chain = backbone(length=20)
    lines = pdb_text(chain).splitlines()
    far_away = lines[3 * 11 + 2]
    lines[3 * 11 + 2] = far_away[:30] + "   0.000" * 3 + far_away[54:]
    del lines[3 * 5 + 1]  # the CA of residue 6
    (tmp_path / "a.pdb").write_text("\n".join(lines))
    [read] = read_backbones(tmp_path / "a.pdb")
    assert len(read.residues) == 18
    assert read.segments.tolist() == [0] * 5 + [1] * 5 + [2] * 8


@pytest.mark.parametrize("content", [b"", b"no structure", bytes(range(256)) * 50, b"ATOM  \n" * 9])
@pytest.mark.parametrize("suffix", [".pdb", ".cif", ".pdb.gz"])
def test_a_broken_file_is_one_clear_line(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"bad{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"bad\{suffix}") as caught:
        read_backbones(path)
    assert len(str(caught.value).splitlines()) == 1


def test_a_chain_that_is_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no protein chain of 8 residues"):
        read_backbones(write_pdb(tmp_path / "a.pdb", backbone(length=7)))


def test_files_are_found_below_the_folder_and_sorted(tmp_path: Path) -> None:
    (tmp_path / "z").mkdir()
    names = ["c.PDB", "a.pdb.gz", "z/b.cif", "b.ent"]
    for name in [*names, "notes.txt", "a.pdb.bak"]:
        (tmp_path / name).touch()
    assert find_files(tmp_path) == sorted(tmp_path / name for name in names)
    assert find_files(tmp_path / "c.PDB") == [tmp_path / "c.PDB"]


def test_a_folder_that_is_missing_or_holds_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no file or folder .*none$"):
        find_files(tmp_path / "none")
    with pytest.raises(DataError, match=r"holds no file that ends with \.pdb, \.ent"):
        find_files(tmp_path)


def test_another_chain_with_the_same_residues_breaks_where_it_was_pulled_apart() -> None:
    chain = backbone(length=12)
    positions = chain.positions.copy()
    positions[6:] += [0, 0, 9.0]
    assert replace(chain, positions=positions).segments.tolist() == [0] * 6 + [1] * 6
