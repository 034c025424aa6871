"""DDP113 unguarded-spawn: mp.spawn at the top level of a script, which every child runs again.

python reproducers/unguarded_spawn.py broken
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ddpdoctor.reproducer import backend, broken, documented, fix, main, own_device, shared_folder

RANKS = 2


def worker(rank: int, folder: Path) -> None:
    """Join the other ranks, and leave a file when all have joined."""
    os.environ["LOCAL_RANK"] = str(rank)
    method = f"file://{folder}/rendezvous"
    dist.init_process_group(backend(), init_method=method, rank=rank, world_size=RANKS)
    total = torch.ones(1, device=own_device())
    dist.all_reduce(total)
    assert total.item() == RANKS, f"the sum over the ranks is {total.item()}"
    dist.destroy_process_group()
    (folder / f"done-{rank}").touch()


def check(folder: Path) -> None:
    """Assert that each rank has run to its end, and no other process has been one."""
    done = sorted(path.name for path in folder.glob("done-*"))
    assert done == [f"done-{rank}" for rank in range(RANKS)], f"these have ended well: {done}"


@broken(ranks="any", launch="python {proof} {variant}")
def spawn_at_the_top_level() -> None:
    """Call mp.spawn where the file is imported, which every spawned child does first."""
    mp.spawn(worker, args=(shared_folder(),), nprocs=RANKS)  # type: ignore[attr-defined, no-untyped-call]  # <-- DDP113
    check(shared_folder())


@documented(source="Python's own error message", launch="python {proof} {variant}")
def fork_at_the_top_level() -> None:
    """Use fork, whose children import nothing; where CUDA has been used, they cannot use it."""
    mp.start_processes(worker, args=(shared_folder(),), nprocs=RANKS, start_method="fork")  # type: ignore[attr-defined, no-untyped-call]
    check(shared_folder())


@fix(source="Python documentation of multiprocessing", launch="python {proof} {variant}")
def spawn_behind_a_guard() -> None:
    """Call mp.spawn below `if __name__ == "__main__":`, which is false in the children."""
    mp.spawn(worker, args=(shared_folder(),), nprocs=RANKS)  # type: ignore[attr-defined, no-untyped-call]
    check(shared_folder())


# The top level of a script: in a child, too, for it has the arguments of its parent.
match sys.argv[1:]:
    case ["broken" | "spawn_at_the_top_level"]:
        spawn_at_the_top_level()
    case ["fork_at_the_top_level"]:
        fork_at_the_top_level()
    case _ if __name__ == "__main__":
        main()
