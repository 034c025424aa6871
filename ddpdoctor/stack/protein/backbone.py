"""Backbones of protein chains, read from files of the PDB. Bad files end here, in one line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.extras import need

Floats = NDArray[np.float64]

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
UNKNOWN = len(AMINO_ACIDS)
"""A residue that is none of the twenty: it is seen by its neighbours, and never predicted."""
SUFFIXES = (".pdb", ".ent", ".cif", ".mmcif")
SHORTEST = 8
"""Residues; what is shorter is a ligand more often than a protein."""
_PEPTIDE_BOND = 2.0
"""Å between C and the next N above which the chain is broken; the bond itself has 1.33."""


@dataclass(frozen=True)
class Backbone:
    """One chain: what it is made of, and where the three atoms of each residue's backbone are."""

    entry: str
    """The file that it comes from, without its suffix."""
    chain: str
    residues: NDArray[np.int64]
    """Indices into AMINO_ACIDS, or UNKNOWN."""
    positions: Floats
    """Å, residues x 3 x 3: N, CA and C."""

    @property
    def name(self) -> str:
        """The entry and the chain, such as "1aki A"."""
        return f"{self.entry} {self.chain}"

    @property
    def segments(self) -> NDArray[np.int64]:
        """For each residue, which unbroken stretch of the chain it belongs to."""
        bonds = np.linalg.norm(self.positions[1:, 0] - self.positions[:-1, 2], axis=-1)
        return np.concatenate([[0], np.cumsum(bonds > _PEPTIDE_BOND)]).astype(np.int64)


def find_files(pdb_path: Path) -> list[Path]:
    """Return the structure files in a folder and those below it, sorted, or the one file given.

    Sorted, because hosts list one folder in different orders, and then disagree on what sample 7
    is. Raises DataError where there is none.
    """
    if pdb_path.is_file():
        return [pdb_path]
    if not pdb_path.is_dir():
        raise DataError(f"there is no file or folder {pdb_path}")
    # A name may go on with .gz, which gemmi reads as well.
    wanted = {*SUFFIXES, *(suffix + ".gz" for suffix in SUFFIXES)}
    files = sorted(
        path for path in pdb_path.rglob("*") if path.is_file() and _suffix(path) in wanted
    )
    if not files:
        raise DataError(f"{pdb_path} holds no file that ends with {', '.join(SUFFIXES)}")
    return files


def read_backbones(path: Path) -> list[Backbone]:
    """Return the protein chains of the first model in a PDB or mmCIF file.

    Residues without N, CA and C in reasonable places are left out. Raises DataError where the file
    cannot be read, or holds no protein chain of at least SHORTEST residues.
    """
    gemmi = need("gemmi", "protein")
    try:
        structure = gemmi.read_structure(str(path))
    except Exception as error:  # a broken file shows itself in nearly any exception of the parser
        raise DataError(f"{path} cannot be read: {_first_line(error)}") from error
    structure.remove_alternative_conformations()
    structure.setup_entities()
    entry = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    chains = structure[0] if len(structure) else []
    found = [_backbone(entry, chain, gemmi) for chain in chains]
    backbones = [backbone for backbone in found if len(backbone.residues) >= SHORTEST]
    if not backbones:
        raise DataError(f"{path} holds no protein chain of {SHORTEST} residues or more")
    return backbones


def _backbone(entry: str, chain: Any, gemmi: Any) -> Backbone:
    polymer = chain.get_polymer()
    proteins = (gemmi.PolymerType.PeptideL, gemmi.PolymerType.PeptideD)
    residues, positions = [], []
    for residue in polymer if polymer.check_polymer_type() in proteins else ():
        atoms = [residue.find_atom(name, "*") for name in ("N", "CA", "C")]
        if all(atoms):
            places = np.array([atom.pos.tolist() for atom in atoms])
            if _is_reasonable(places):
                # A modified residue counts as what it was made of: selenomethionine is an M.
                letter = gemmi.find_tabulated_residue(residue.name).one_letter_code.upper()
                found = AMINO_ACIDS.find(letter)
                residues.append(UNKNOWN if found < 0 else found)
                positions.append(places)
    return Backbone(
        entry, chain.name, np.array(residues, np.int64), np.array(positions).reshape(-1, 3, 3)
    )


def _is_reasonable(places: Floats) -> bool:
    """Whether three atoms span a frame: bonds of about 1.5 Å, at an angle that is not flat."""
    to_n, to_c = places[0] - places[1], places[2] - places[1]
    lengths = np.linalg.norm([to_n, to_c], axis=1)
    return bool(
        np.isfinite(places).all()
        and (lengths > 1.0).all()
        and (lengths < 2.0).all()
        and np.linalg.norm(np.cross(to_n, to_c)) > 0.5
    )


def _suffix(path: Path) -> str:
    name = path.name.lower()
    packed = ".gz" if name.endswith(".gz") else ""
    return Path(name.removesuffix(".gz")).suffix + packed


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
