"""Made-up chains, for a first training without a download. No protein looks like these.

Each is a row of helices, strands and loops at ideal geometry, a little out of shape, and its
residues are drawn from the preferences of Chou and Fasman for each kind of structure, sharpened: so
the structure says something about the sequence, as in nature, and there is something to learn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ddpdoctor.stack.protein.backbone import Backbone, Floats

# Degrees, (phi, psi); ideal values of an alpha helix, an antiparallel strand, and polyproline II
# for what lies between.
_TORSIONS = {"helix": (-57.0, -47.0), "strand": (-139.0, 135.0), "loop": (-75.0, 145.0)}
_SPREAD = {"helix": 4.0, "strand": 8.0, "loop": 30.0}
_LENGTHS = {"helix": (8, 16), "strand": (5, 9), "loop": (3, 6)}
# P. Y. Chou and G. D. Fasman, Adv. Enzymol. 47 (1978), in the order of backbone.AMINO_ACIDS: how
# much more often than on average a residue is found in a helix, in a strand, in a turn.
_PREFERENCES = {
    "helix": "1.42 .70 1.01 1.51 1.13 .57 1.00 1.08 1.16 1.21 1.45 .67 .57 1.11 .98 .77 .83 1.06 "
    "1.08 .69",
    "strand": ".83 1.19 .54 .37 1.38 .75 .87 1.60 .74 1.30 1.05 .89 .55 1.10 .93 .75 1.19 1.70 "
    "1.37 1.47",
    "loop": ".66 1.19 1.46 .74 .60 1.56 .95 .47 1.01 .59 .60 1.56 1.52 .98 .95 1.43 .96 .50 .96 "
    "1.14",
}
_SHARPENED = 8
# Å and degrees: N-CA, CA-C, C-N, and the angles at CA, C and N (Engh and Huber).
_BONDS = (1.458, 1.525, 1.329)
_ANGLES = (111.2, 116.2, 121.7)


def synthetic_backbones(count: int, seed: int) -> list[Backbone]:
    """Return `count` chains of about 50 residues; the same for the same seed, everywhere."""
    generator = np.random.default_rng(seed)
    chains = [_draw(generator) for _ in range(count)]
    lengths = [len(residues) for residues, _ in chains]
    # All at once, the shorter ones with a tail that is cut off again.
    torsions = np.zeros((count, max(lengths, default=0), 2))
    for row, (_, drawn) in zip(torsions, chains, strict=True):
        row[: len(drawn)] = np.radians(drawn)
    positions = place(torsions[..., 0], torsions[..., 1])
    return [
        Backbone(f"synthetic-{index}", "A", residues, positions[index, :length])
        for index, ((residues, _), length) in enumerate(zip(chains, lengths, strict=True))
    ]


def place(phi: Floats, psi: Floats) -> Floats:
    """Return N, CA and C of chains with these torsions (radians): chains x residues x 3 x 3, in Å.

    Each atom is set from the three before it, by its bond, angle and torsion; peptide bonds are
    trans. The first phi of a chain and its last psi have no meaning.
    """
    chains, residues = phi.shape
    # The torsion about C-N places CA, that about N-CA places C, that about CA-C the next N.
    around = np.stack([np.full_like(phi, np.pi), phi, psi], axis=-1)
    angle = np.pi - np.radians(_ANGLES[0])
    begin = [[0.0, 0.0], [_BONDS[0], 0.0]]
    begin.append([begin[1][0] + _BONDS[1] * np.cos(angle), _BONDS[1] * np.sin(angle)])
    atoms = [np.tile([x, y, 0.0], (chains, 1)) for x, y in begin]
    for number in range(3, 3 * residues):
        residue, kind = divmod(number, 3)  # kind 0 is N, 1 is CA, 2 is C
        torsion = around[:, residue - 1, 2] if kind == 0 else around[:, residue, kind - 1]
        bond = _BONDS[(kind + 2) % 3]
        # The angle at the atom before: at C for an N, at N for a CA, at CA for a C.
        atoms.append(_next(atoms[-3:], bond, np.radians(_ANGLES[(kind + 1) % 3]), torsion))
    return np.stack(atoms[: 3 * residues], axis=1).reshape(chains, residues, 3, 3)


def _draw(generator: np.random.Generator) -> tuple[NDArray[np.int64], Floats]:
    """Draw a chain: its residues, and their phi and psi in degrees (residues x 2)."""
    kinds = ["loop"]
    for _ in range(generator.integers(3, 6)):
        kinds += [str(generator.choice(["helix", "strand"])), "loop"]
    residues, torsions = [], []
    for kind in kinds[1:-1]:
        length = generator.integers(*_LENGTHS[kind], endpoint=True)
        weights = np.array(_PREFERENCES[kind].split(), float) ** _SHARPENED
        residues.append(generator.choice(len(weights), size=length, p=weights / weights.sum()))
        torsions.append(generator.normal(_TORSIONS[kind], _SPREAD[kind], (length, 2)))
    return np.concatenate(residues).astype(np.int64), np.concatenate(torsions)


def _next(before: list[Floats], bond: float, angle: float, torsion: Floats) -> Floats:
    """Place an atom of each chain by distance, angle and torsion to three others (Å, radians)."""
    a, b, c = before
    along = (c - b) / np.linalg.norm(c - b, axis=-1, keepdims=True)
    normal = np.cross(b - a, along)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    sideways = np.cross(normal, along)
    # Across the bond: how far to each side is what the torsion decides.
    across = np.cos(torsion)[:, None] * sideways + np.sin(torsion)[:, None] * normal
    placed: Floats = c + bond * (np.sin(angle) * across - np.cos(angle) * along)
    return placed
