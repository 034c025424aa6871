"""Chains to test with, and how they are written as a file of the PDB."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gemmi
import numpy as np

from ddpdoctor.stack.protein.backbone import AMINO_ACIDS, Backbone
from ddpdoctor.stack.protein.graph import GraphConfig, MaskConfig, Sample, build_graph, draw_mask
from ddpdoctor.stack.protein.synthetic import synthetic_backbones

NAMES = [*gemmi.expand_one_letter_sequence(AMINO_ACIDS, gemmi.ResidueKind.AA), "UNK"]


def backbone(seed: int = 0, length: int = 12) -> Backbone:
    [chain] = synthetic_backbones(1, seed)
    return replace(chain, residues=chain.residues[:length], positions=chain.positions[:length])


def sample(seed: int = 0, length: int = 12, mask_ratio: float = 0.5) -> Sample:
    graph = build_graph(backbone(seed, length), GraphConfig())
    generator = np.random.default_rng(seed)
    return graph, draw_mask(graph, MaskConfig(mask_ratio=mask_ratio), generator)


def pdb_text(chain: Backbone, names: list[str] | None = None) -> str:
    names = names or [NAMES[residue] for residue in chain.residues]
    lines = []
    for number, (name, places) in enumerate(zip(names, chain.positions, strict=True), start=1):
        for atom, (x, y, z) in zip(("N", "CA", "C"), places, strict=True):
            lines.append(
                f"ATOM  {len(lines) + 1:5}  {atom:<3} {name} {chain.chain}{number:4}    "
                f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00           {atom[0]}  "
            )
    return "\n".join([*lines, "TER", "END", ""])


def write_pdb(path: Path, chain: Backbone) -> Path:
    path.write_text(pdb_text(chain))
    return path
