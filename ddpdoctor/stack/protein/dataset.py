"""From a folder of structures to three sets of chains."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import DataError
from ddpdoctor.stack.outcome import on_main, together
from ddpdoctor.stack.preparation import prepare_folder
from ddpdoctor.stack.process_group import World
from ddpdoctor.stack.protein.backbone import Backbone, find_files, read_backbones
from ddpdoctor.stack.protein.graph import Graph, GraphConfig, build_graph

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chains:
    """Chains with their graphs, and why some files gave none."""

    entries: list[str]
    """The file that each chain comes from, without its suffix."""
    graphs: list[Graph]
    left_out: list[str]
    """One line for each file that could not be used."""

    def digest(self) -> str:
        """Return a name for this very content: the same in every process and on every rank."""
        result = hashlib.sha256()
        for entry, graph in zip(self.entries, self.graphs, strict=True):
            result.update(entry.encode())
            for tensor in vars(graph).values():
                result.update(tensor.numpy().tobytes())
        return result.hexdigest()


@dataclass(frozen=True)
class Split:
    """Indices of the chains in each set."""

    train: list[int]
    validation: list[int]
    test: list[int]


def as_chains(backbones: Sequence[Backbone], config: GraphConfig) -> Chains:
    """Return backbones that are in memory with their graphs."""
    if not backbones:
        raise DataError("there are no chains")
    entries = [backbone.entry for backbone in backbones]
    return Chains(entries, [build_graph(backbone, config) for backbone in backbones], [])


def read_chains(
    pdb_path: Path, cache_dir: Path | None, config: GraphConfig, world: World
) -> Chains:
    """Return the chains of a structure file, or of all in a folder, on every rank. A collective.

    A file that cannot be read, or holds no protein, is left out, with one line of log. Without
    `cache_dir` each rank reads all files. With it, one rank of each node reads them and writes
    what it found there, whole or not at all, and everybody takes it from there, in later trainings
    too: the name follows from the files' names, sizes and times.

    Raises DataError on all ranks where there is nothing to train on.
    """
    # Rank 0 looks for all: a listing is another one a moment later, or on another host.
    files, key = on_main(world, lambda: _found(pdb_path, config))
    if cache_dir is None:
        with together(world):
            chains = _read(files, config)
    else:
        prepare_folder(cache_dir, world)
        cache = cache_dir / f"chains_{key[:16]}.pt"
        with together(world):
            # Two nodes may share the folder: both then write the same, and the later one wins.
            if world.local_rank == 0 and not cache.is_file():
                cache_dir.mkdir(parents=True, exist_ok=True)
                with checkpoint.replacing(cache) as file:
                    torch.save(_packed(_read(files, config)), file)
        chains = _unpacked(checkpoint.load(cache, world))
    if world.is_main:
        for line in chains.left_out:
            log.warning("left out: %s", line)
    if not chains.graphs:
        raise DataError(
            f"none of the {len(files)} file(s) of {pdb_path} can be used; the first: "
            f"{chains.left_out[0]}"
        )
    return chains


def split_by_family(chains: Chains, seed: int) -> Split:
    """Split 80:10:10, keeping together chains of one entry, and chains of one sequence.

    Those are the same protein again: with one in the training set and one in the test set, the test
    would measure memory. The same seed gives the same split everywhere. Raises DataError for fewer
    than three such families.
    """
    families = _families(chains)
    if len(families) < 3:
        raise DataError(
            f"{len(families)} different protein(s) cannot be split in three: give more files"
        )
    order = [families[i] for i in np.random.default_rng(seed).permutation(len(families))]
    wanted = max(1, len(chains.graphs) // 10)
    validation = _take(order, wanted, leave=2)
    test = _take(order, wanted, leave=1)
    return Split([chain for family in order for chain in family], validation, test)


def _found(pdb_path: Path, config: GraphConfig) -> tuple[list[Path], str]:
    files = find_files(pdb_path)
    key = hashlib.sha256(config.model_dump_json(include=set(GraphConfig.model_fields)).encode())
    for file in files:
        status = file.stat()
        key.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return files, key.hexdigest()


def _read(files: Sequence[Path], config: GraphConfig) -> Chains:
    entries: list[str] = []
    graphs: list[Graph] = []
    left_out: list[str] = []
    for file in files:
        try:
            backbones = read_backbones(file)
        except DataError as error:
            left_out.append(str(error))
            continue
        entries += [backbone.entry for backbone in backbones]
        graphs += [build_graph(backbone, config) for backbone in backbones]
    return Chains(entries, graphs, left_out)


def _families(chains: Chains) -> list[list[int]]:
    """Join what shares an entry or a sequence, also by way of others."""
    family = list(range(len(chains.graphs)))

    def head(chain: int) -> int:
        while family[chain] != chain:
            chain = family[chain]
        return chain

    first: dict[object, int] = {}
    for chain, (entry, graph) in enumerate(zip(chains.entries, chains.graphs, strict=True)):
        for trait in (entry, graph.residues.numpy().tobytes()):
            family[head(chain)] = head(first.setdefault(trait, chain))
    members: dict[int, list[int]] = {}
    for chain in range(len(family)):
        members.setdefault(head(chain), []).append(chain)
    return list(members.values())


def _take(families: list[list[int]], wanted: int, leave: int) -> list[int]:
    """Take families off the list until they hold `wanted` chains, but leave some."""
    taken: list[int] = []
    while len(taken) < wanted and len(families) > leave:
        taken += families.pop()
    return taken


def _packed(chains: Chains) -> dict[str, Any]:
    # A few large tensors rather than thousands of small ones: that is what loads quickly.
    parts = {f.name: [getattr(graph, f.name) for graph in chains.graphs] for f in fields(Graph)}
    return {
        "entries": chains.entries,
        "left_out": chains.left_out,
        "sizes": {name: [len(part) for part in each] for name, each in parts.items()},
        "graphs": {name: torch.cat(each) for name, each in parts.items() if each},
    }


def _unpacked(packed: dict[str, Any]) -> Chains:
    parts = [
        torch.split(packed["graphs"][f.name], packed["sizes"][f.name])
        for f in fields(Graph)
        if packed["graphs"]
    ]
    graphs = [Graph(*tensors) for tensors in zip(*parts, strict=True)]
    return Chains(packed["entries"], graphs, packed["left_out"])
