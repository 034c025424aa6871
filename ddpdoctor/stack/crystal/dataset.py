"""From structures and labels to three sets of graphs. Bad input ends here, in one line."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.crystal.graph import (
    Crystal,
    Floats,
    Graph,
    GraphConfig,
    as_crystal,
    build_graph,
)
from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.extras import need
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import World


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


def read_extxyz(extxyz_file: str | Path, target_property: str) -> tuple[list[Any], list[float]]:
    """Read all structures of an extended XYZ file, and one number that each of them carries.

    Raises DataError where the file cannot be read, or a structure lacks the property.
    """
    path, reader = Path(extxyz_file), need("ase.io", "crystal")
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    try:
        strucs = reader.read(path, index=":", format="extxyz")
    except Exception as error:  # a broken file shows itself in nearly any exception of the reader
        raise DataError(f"{path} is not a whole extended XYZ file: {_first_line(error)}") from error
    if not strucs:
        raise DataError(f"{path} holds no structures")
    labels = []
    for index, atoms in enumerate(strucs):
        # ase moves energies, forces and the like out of `info` into a calculator.
        values = {**(atoms.calc.results if atoms.calc else {}), **atoms.info}
        if target_property not in values:
            known = ", ".join(sorted(values)) or "none"
            raise DataError(
                f"structure {index} of {path} has no property {target_property!r}; it has: {known}"
            )
        labels.append(values[target_property])
    return strucs, labels


def checked(
    strucs: Sequence[Any], labels: Sequence[Any], *, log10: bool
) -> tuple[list[Crystal], Floats]:
    """Return crystals and labels that can be trained on, or raise DataError."""
    if len(strucs) == 0:
        raise DataError("there are no structures")
    if len(strucs) != len(labels):
        raise DataError(f"there are {len(strucs)} structures, but {len(labels)} labels")
    crystals, values = [], np.empty(len(labels))
    for index, (structure, label) in enumerate(zip(strucs, labels, strict=True)):
        try:
            crystals.append(as_crystal(structure))
            values[index] = float(label)
        except DataError as error:
            raise DataError(f"structure {index} {error}") from error
        except (TypeError, ValueError) as error:
            raise DataError(f"label {index} is {_in_short(label)}, not a number") from error
        if not math.isfinite(values[index]) or (log10 and values[index] <= 0):
            wanted = "a positive number, as log10 needs" if log10 else "a finite number"
            raise DataError(f"label {index} is {values[index]}, not {wanted}")
    return crystals, np.log10(values) if log10 else values


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


def build_graphs(
    crystals: Sequence[Crystal], config: GraphConfig, folder: Path | None, world: World
) -> list[Graph]:
    """Return a graph for each crystal, on every rank. A collective.

    Without `folder` every rank builds them all in its own memory. With it, rank 0 builds them
    once and writes them there, and everybody reads that file, in later trainings too: its name is
    a digest of the structures and of how they become graphs.
    """
    if folder is None:
        with together(world):
            return [build_graph(crystal, config) for crystal in crystals]
    wanted = config.model_dump_json(include=set(GraphConfig.model_fields))
    cache = folder / f"graphs_{digest(crystals, wanted)[:16]}.pt"
    with together(world):
        # It is written whole or not at all, so a file that is there can be trusted.
        if world.is_main and not cache.is_file():
            with checkpoint.replacing(cache) as file:
                torch.save(_packed([build_graph(crystal, config) for crystal in crystals]), file)
    return _unpacked(checkpoint.load(cache, world))


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


def _packed(graphs: Sequence[Graph]) -> dict[str, torch.Tensor]:
    # A few large tensors rather than thousands of small ones: that is what loads quickly.
    packed = {
        field.name: torch.cat([getattr(graph, field.name) for graph in graphs])
        for field in fields(Graph)
    }
    packed["n_atoms"] = torch.tensor([len(graph.numbers) for graph in graphs])
    packed["n_edges"] = torch.tensor([len(graph.length) for graph in graphs])
    return packed


def _unpacked(packed: dict[str, torch.Tensor]) -> list[Graph]:
    atoms, edges = packed["n_atoms"].tolist(), packed["n_edges"].tolist()
    parts = [
        torch.split(packed[field.name], atoms if field.name == "numbers" else edges)
        for field in fields(Graph)
    ]
    return [Graph(*tensors) for tensors in zip(*parts, strict=True)]


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
