"""What is known of each element before any training: a few hundred crystals cannot teach it."""

from __future__ import annotations

import warnings

import torch

from ddpdoctor.stack.extras import need

LARGEST_ATOMIC_NUMBER = 118
PROPERTIES = (
    "row",
    "group",
    "X",  # electronegativity
    "mendeleev_no",
    "atomic_radius",
    "ionization_energy",
    "melting_point",
    "molar_volume",
)
"""Properties of the atom and the simple substance, by pymatgen's names. No elastic ones: the
default data set asks for the bulk moduli of the elements themselves."""


def element_table() -> torch.Tensor:
    """Return one row per atomic number (row 0 is unused), each column standardised.

    Where a property is unknown the row holds the mean, which is 0.
    """
    element = need("pymatgen.core.periodic_table", "crystal").Element
    table = torch.full((LARGEST_ATOMIC_NUMBER + 1, len(PROPERTIES)), torch.nan)
    with warnings.catch_warnings():
        # pymatgen warns of each property that it does not know.
        warnings.simplefilter("ignore")
        for number in range(1, LARGEST_ATOMIC_NUMBER + 1):
            for column, name in enumerate(PROPERTIES):
                value = getattr(element.from_Z(number), name)
                if value is not None:
                    table[number, column] = float(value)
    mean = table.nanmean(dim=0)
    deviation = (table - mean).square().nanmean(dim=0).sqrt()
    return ((table - mean) / deviation).nan_to_num(0.0)
