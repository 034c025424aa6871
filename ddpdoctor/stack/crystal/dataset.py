"""From structures and labels to three sets of graphs. Bad input ends here, in one line."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ddpdoctor.stack.crystal.graph import Crystal, Floats, as_crystal
from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.extras import need


@dataclass(frozen=True)
class Split:
    """Indices of the structures in each set."""

    train: list[int]
    validation: list[int]
    test: list[int]


def dcdft() -> tuple[list[Any], list[float]]:
    """Return 71 elemental crystals and the log10 of their bulk moduli in GPa.

    The data set of the Delta project, all-electron values by WIEN2k, as it comes with ase.
    """
    collection = need("ase.collections", "crystal").dcdft
    strucs = [collection[name] for name in collection.names]
    moduli = [collection.data[name]["wien2k_B"] for name in collection.names]
    return strucs, [math.log10(modulus) for modulus in moduli]


def read_structures(extxyz_file: str | Path) -> list[Any]:
    """Read all structures of an extended XYZ file. Raises DataError where it cannot be read."""
    path, reader = Path(extxyz_file), need("ase.io", "crystal")
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    try:
        strucs: list[Any] = reader.read(path, index=":", format="extxyz")
    except Exception as error:  # a broken file shows itself in nearly any exception of the reader
        raise DataError(f"{path} is not a whole extended XYZ file: {_first_line(error)}") from error
    if not strucs:
        raise DataError(f"{path} holds no structures")
    return strucs


def read_extxyz(
    extxyz_file: str | Path, targets: Sequence[str]
) -> tuple[list[Any], list[list[Any]]]:
    """Read all structures of an extended XYZ file, and the properties that each of them carries.

    Raises DataError where the file cannot be read, or a structure lacks a property.
    """
    strucs = read_structures(extxyz_file)
    labels = []
    for index, atoms in enumerate(strucs):
        # ase moves energies, forces and the like out of `info` into a calculator.
        values = {**(atoms.calc.results if atoms.calc else {}), **atoms.info}
        for target in targets:
            if target not in values:
                known = ", ".join(sorted(values)) or "none"
                raise DataError(
                    f"structure {index} of {extxyz_file} has no property {target!r}; "
                    f"it has: {known}"
                )
        labels.append([values[target] for target in targets])
    return strucs, labels


def checked(
    strucs: Sequence[Any], labels: Sequence[Any], *, log10: bool
) -> tuple[list[Crystal], Floats]:
    """Return crystals and labels (structures x targets) that can be trained on.

    Raises DataError where one of them cannot.
    """
    if len(strucs) == 0:
        raise DataError("there are no structures")
    if len(strucs) != len(labels):
        raise DataError(f"there are {len(strucs)} structures, but {len(labels)} labels")
    crystals = [_crystal(index, structure) for index, structure in enumerate(strucs)]
    rows = [_row(index, label, log10) for index, label in enumerate(labels)]
    for index, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(f"label {index} has {len(row)} values, label 0 has {len(rows[0])}")
    values = np.array(rows)
    return crystals, np.log10(values) if log10 else values


def _crystal(index: int, structure: Any) -> Crystal:
    try:
        return as_crystal(structure)
    except DataError as error:
        raise DataError(f"structure {index} {error}") from error


def _row(index: int, label: Any, log10: bool) -> list[float]:
    several = isinstance(label, list | tuple | np.ndarray) and np.ndim(label) == 1
    row = []
    for value in label if several else [label]:
        try:
            row.append(float(value))
        except (TypeError, ValueError) as error:
            raise DataError(f"label {index} is {_in_short(value)}, not a number") from error
        if not math.isfinite(row[-1]) or (log10 and row[-1] <= 0):
            wanted = "a positive number, as log10 needs" if log10 else "a finite number"
            raise DataError(f"label {index} is {row[-1]}, not {wanted}")
    if not row:
        raise DataError(f"label {index} has no value")
    return row


def split_by_formula(crystals: Sequence[Crystal], seed: int) -> Split:
    """Split 80:10:10, keeping all crystals of one formula together.

    Polymorphs have nearly the same properties: with one in the training set and one in the test
    set, the test would measure memory. The sizes are those of int(0.8 n), int(0.1 n) and the rest,
    as near as whole formulas allow, and at least 1. The same seed gives the same split everywhere.
    Raises DataError for fewer than three formulas.
    """
    groups: dict[object, list[int]] = {}
    for index, crystal in enumerate(crystals):
        groups.setdefault(crystal.formula, []).append(index)
    if len(groups) < 3:
        raise DataError(f"{len(groups)} different formulas cannot be split in three: give more")
    total = len(crystals)
    size = int(0.1 * total)
    generator = np.random.default_rng(seed)
    remaining = [list(groups.values())[i] for i in generator.permutation(len(groups))]
    validation, remaining = _take(remaining, size, leave=2)
    test, train = _take(remaining, total - int(0.8 * total) - size, leave=1)
    return Split(*(list(chain.from_iterable(part)) for part in (train, validation, test)))


def digest(crystals: Sequence[Crystal], *others: str | bytes) -> str:
    """Return a name for this very content: the same in every process and on every rank.

    Python's `hash` would not do: for strings it is salted anew in each process.
    """
    result = hashlib.sha256()
    for crystal in crystals:
        for array in (crystal.numbers, crystal.positions, crystal.cell):
            result.update(array.tobytes())
    for other in others:
        result.update(other if isinstance(other, bytes) else other.encode())
    return result.hexdigest()


def _take(
    groups: list[list[int]], size: int, leave: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Take groups whose sizes add up as near to `size` as can be, but leave at least `leave`."""
    taken = _nearest_sum([len(group) for group in groups], size)
    if len(groups) - len(taken) < leave:
        largest = sorted(range(len(groups)), key=lambda i: len(groups[i]))[-leave:]
        sizes = [0 if i in largest else len(group) for i, group in enumerate(groups)]
        taken = _nearest_sum(sizes, size)
    chosen = [group for index, group in enumerate(groups) if index in taken]
    return chosen, [group for index, group in enumerate(groups) if index not in taken]


def _nearest_sum(sizes: Sequence[int], wanted: int) -> set[int]:
    """Return which of `sizes` to add up for the sum nearest to `wanted`, but more than nothing."""
    # The sums that can be made with the sizes seen so far, as the bits of one number; and for each
    # sum the size that made it first. Only sums below `wanted` are worth adding to.
    sums, below = 1, (1 << max(wanted, 1)) - 1
    made_by: dict[int, int] = {}
    for index, size in enumerate(sizes):
        new = ((sums & below) << size) & ~sums
        sums |= new
        while new:
            made_by[new.bit_length() - 1] = index
            new ^= 1 << new.bit_length() - 1
        if wanted in made_by:
            break
    total = min(made_by, key=lambda made: (abs(made - wanted), made))
    taken = set()
    while total:
        taken.add(made_by[total])
        total -= sizes[made_by[total]]
    return taken


def _in_short(value: object) -> str:
    return " ".join(repr(value).split())[:60]


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
