"""Graphs, which are the same for everybody: built once per node, and kept there once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import torch
import torch.distributed as dist

from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.crystal.dataset import digest
from ddpdoctor.stack.crystal.graph import NO_ATOMS, Crystal, Graph, GraphConfig, build_graph
from ddpdoctor.stack.outcome import together
from ddpdoctor.stack.process_group import World, ranks_of_this_node

T = TypeVar("T")


def build_graphs(
    crystals: Sequence[Crystal], config: GraphConfig, folder: Path | None, world: World
) -> list[Graph]:
    """Return a graph for each crystal, on every rank. A collective.

    The ranks of a node build them together, each its share, and then map one file into memory,
    which the node thus holds once. With `folder` the file stays there, for later trainings too: its
    name is a digest of the structures and of how they become graphs.
    """
    if world.world_size == 1 and folder is None:
        return [build_graph(crystal, config) for crystal in crystals]
    wanted = config.model_dump_json(include=set(GraphConfig.model_fields))
    name = f"graphs_{digest(crystals, wanted)[:16]}.pt"
    peers = ranks_of_this_node(world)
    with _place(folder, peers, world) as place:
        _build(crystals, config, place / name, peers, world)
        return _unpacked(checkpoint.load(place / name, world, mmap=True))


def _build(
    crystals: Sequence[Crystal], config: GraphConfig, path: Path, peers: list[int], world: World
) -> None:
    # One rank looks for its node: the others might look when the file is there already. And every
    # node takes part in every exchange, whether its own file is there or not.
    is_there = _by_first(path.is_file(), peers, world)
    parts = [path.with_name(f".{path.name}.{rank}.tmp") for rank in peers]
    mine = peers.index(world.rank)
    with together(world):
        if not is_there:
            share = crystals[mine :: len(peers)]
            with checkpoint.replacing(parts[mine]) as file:
                torch.save(_packed([build_graph(crystal, config) for crystal in share]), file)
    with together(world):
        if not is_there and mine == 0:
            graphs: list[Graph | None] = [None] * len(crystals)
            for start, part in enumerate(parts):
                graphs[start :: len(parts)] = _unpacked(torch.load(part, weights_only=True))
                part.unlink()
            with checkpoint.replacing(path) as file:
                torch.save(_packed([graph for graph in graphs if graph]), file)


@contextmanager
def _place(folder: Path | None, peers: list[int], world: World) -> Iterator[Path]:
    """Give the ranks of a node one folder, which is theirs for the block unless it is `folder`."""
    if folder is not None:
        yield folder
        return
    temporary = ""
    with together(world):
        if world.rank == peers[0]:
            temporary = tempfile.mkdtemp(prefix="graphs_")
    place = _by_first(temporary, peers, world)
    try:
        # What is mapped stays readable when its name is gone; and the block ends, or fails, on all
        # ranks together.
        yield Path(place)
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def _by_first(value: T, peers: list[int], world: World) -> T:
    """Return the value of the first rank of this node."""
    values = [value] * world.world_size
    if world.world_size > 1:
        dist.all_gather_object(values, value)
    return values[peers[0]]


def _packed(graphs: Sequence[Graph]) -> dict[str, torch.Tensor]:
    # A few large tensors rather than thousands of small ones: that is what loads quickly.
    packed = {
        field.name: torch.cat([getattr(graph, field.name) for graph in graphs or [NO_ATOMS]])
        for field in fields(Graph)
    }
    packed["n_atoms"] = torch.tensor([len(graph.numbers) for graph in graphs], dtype=torch.int64)
    packed["n_edges"] = torch.tensor([len(graph.length) for graph in graphs], dtype=torch.int64)
    return packed


def _unpacked(packed: dict[str, torch.Tensor]) -> list[Graph]:
    atoms, edges = packed["n_atoms"].tolist(), packed["n_edges"].tolist()
    parts = [
        torch.split(packed[field.name], atoms if field.name == "numbers" else edges)
        for field in fields(Graph)
    ]
    return [Graph(*tensors) for tensors in zip(*parts, strict=True)]
