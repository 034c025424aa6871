"""DDP212 cache-race: every rank builds the same cache file, and reads what another is writing.

torchrun --nproc-per-node=4 reproducers/cache_race.py broken
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    measured,
    own_device,
    same_on_all_ranks,
    shared_folder,
)
from ddpdoctor.stack import checkpoint
from ddpdoctor.stack.errors import DataError, StackError
from ddpdoctor.stack.outcome import on_main, together
from ddpdoctor.stack.process_group import World, session

GRAPHS, SIZE = 12, 200_000  # 10 MB of preprocessed samples

Graphs = list[Tensor]
GetGraphs = Callable[[Path, World], Graphs]


def preprocess() -> Graphs:
    """Make the graphs of all structures, which takes hours in earnest."""
    note = shared_folder() / f"preprocessed-{uuid4().hex}"
    note.touch()
    time.sleep(0.1)
    return [torch.full((SIZE,), float(number)) for number in range(GRAPHS)]


def prepare_data(get: GetGraphs) -> None:
    """Get the graphs from the cache; assert that they are whole on every rank, and built once."""
    with session(backend=backend()) as world:
        path = shared_folder() / "graphs.pt"
        dist.all_reduce(torch.ones(1, device=own_device()))  # ranks arrive together
        graphs = get(path, world)
        assert [int(graph[-1]) for graph in graphs] == list(range(GRAPHS)), "graphs are damaged"
        assert same_on_all_ranks(graphs), "the ranks hold different graphs"
        times = len(list(shared_folder().glob("preprocessed-*")))
        measured(f"preprocessed {times} times on {world.world_size} ranks")
        left = [each.name for each in path.parent.glob("*graphs.pt*")]
        assert left == [path.name], f"files left behind: {left}"


def build_or_read(path: Path, world: World) -> Graphs:
    if not path.exists():
        torch.save(preprocess(), path)  # <-- DDP212
    graphs: Graphs = torch.load(path)
    return graphs


@broken(ranks="any", launches=5)
def every_rank_builds() -> None:
    """Each rank looks for the cache, builds it where it is missing, and reads it."""
    prepare_data(build_or_read)


def build_on_rank_0(path: Path, world: World) -> Graphs:
    if os.environ["RANK"] == "0" and not path.exists():
        torch.save(preprocess(), path)
    graphs: Graphs = torch.load(path)
    return graphs


@documented(source="BiomedSciAI/fuse-med-ml#284", launches=2)
def guard_by_rank() -> None:
    """Guard the caching with os.environ["RANK"]."""
    prepare_data(build_on_rank_0)


def build_then_barrier(path: Path, world: World) -> Graphs:
    if world.is_main and not path.exists():
        torch.save(preprocess(), path)
    dist.barrier()
    graphs: Graphs = torch.load(path)
    return graphs


@documented(source="deepspeedai/Megatron-DeepSpeed#356", launches=2)
def barrier_after_the_build() -> None:
    """Build on rank 0, and add a barrier before the others read."""
    prepare_data(build_then_barrier)


def build_and_rename(path: Path, world: World) -> Graphs:
    if not path.is_file():
        graphs = preprocess()
        temporary = path.with_name(f"{uuid4().hex}-graphs.pt.tmp")
        torch.save(graphs, temporary)
        if not path.is_file():
            temporary.replace(path)
        else:
            temporary.unlink()
    read: Graphs = torch.load(path)
    return read


@documented(source="allenai/OLMo-core#651", launches=2)
def rename_unless_it_exists() -> None:
    """Every rank builds to a temporary name, and renames unless the file is there by then."""
    prepare_data(build_and_rename)


def build_with_the_stack(path: Path, world: World) -> Graphs:
    with together(world):
        if world.is_main and not path.exists():
            with checkpoint.replacing(path) as file:
                torch.save(preprocess(), file)
    graphs: Graphs = torch.load(path)
    return graphs


@fix(launches=2)
def built_once_and_outcome_shared() -> None:
    """Rank 0 builds under a temporary name and renames; the others wait for the outcome."""
    prepare_data(build_with_the_stack)


@fix()
def failed_build_fails_everywhere() -> None:
    """The same, where a structure cannot be read: all ranks raise, none waits."""

    def fail() -> Graphs:
        raise DataError("structure 17 has no atoms")

    with session(backend=backend()) as world:
        refusal = ""
        try:
            on_main(world, fail)
        except StackError as error:
            refusal = str(error)
        assert "structure 17" in refusal, "a rank was not told that the build had failed"


if __name__ == "__main__":
    main()
