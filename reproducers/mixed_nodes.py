"""DDP110 mixed-nodes: the nodes run different versions of the script.

torchrun --nproc-per-node=4 reproducers/mixed_nodes.py broken
"""

from __future__ import annotations

import hashlib
import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddpdoctor.reproducer import (
    backend,
    broken,
    documented,
    fix,
    main,
    own_device,
    same_on_all_ranks,
    shared_folder,
)
from ddpdoctor.stack.process_group import session, wrap

WIDTH = 8  # it was 6 until yesterday


def second_node() -> list[int]:
    """Return the ranks that run on the second of two nodes."""
    world_size = int(os.environ["WORLD_SIZE"])
    return list(range((world_size + 1) // 2, world_size))


def script_of_this_node(*, brought_up_to_date: bool = False) -> Any:
    """Return the training script as this rank's node has it: on the second one, yesterday's."""
    rank = int(os.environ["RANK"])
    source = Path(__file__).read_text(encoding="utf-8")
    if rank in second_node() and not brought_up_to_date:
        source = source.replace("WIDTH = 8", "WIDTH = 6")
    # Another folder, for Python would take yesterday's bytecode for that of a file just as long.
    state = "today" if brought_up_to_date else "as-found"
    path = shared_folder() / f"disk-of-{rank}" / state / Path(__file__).name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def join() -> None:
    dist.init_process_group(backend())  # <-- DDP110
    dist.barrier()


def train() -> None:
    """Wrap a model of this script's width, and take a step."""
    model = nn.Linear(WIDTH, 1).to(own_device())
    ddp = DistributedDataParallel(model)
    ddp(torch.ones(4, WIDTH, device=own_device())).mean().backward()
    assert same_on_all_ranks(each.grad for each in model.parameters() if each.grad is not None)
    del ddp


@broken(ranks="nonzero")
def yesterdays_script_on_one_node() -> None:
    """Start on two nodes, of which one has the script of yesterday."""
    script = script_of_this_node()
    script.join()
    script.train()


@documented(source="001 process hangs, 3", promises="an aid")
def compare_torch_and_nccl() -> None:
    """Ensure that all nodes have one version of torch and of NCCL, which they have."""
    script = script_of_this_node()
    script.join()
    version = (torch.__version__, torch.version.cuda)
    versions: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(versions, version)
    assert set(versions) == {version}, f"versions: {versions}"
    script.train()


def fingerprint(script: Any) -> str:
    """Return what must be the same on all ranks: torch, CUDA and the script, in one line."""
    digest = hashlib.sha256(Path(script.__file__).read_bytes()).hexdigest()[:8]
    return f"torch {torch.__version__}, CUDA {torch.version.cuda}, {script.__file__[-14:]} {digest}"


def must_agree(mine: str, name: str) -> None:
    """Raise the same error on every rank if their fingerprints differ; before any of them joins.

    Ranks of several hosts use dist.TCPStore in place of the file, and join by store= afterwards.
    """
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.FileStore(str(shared_folder() / name), world_size)  # type: ignore[attr-defined]
    store.set(str(rank), mine)
    everywhere = [store.get(str(each)).decode() for each in range(world_size)]
    if differ := [each for each, theirs in enumerate(everywhere) if theirs != everywhere[0]]:
        raise RuntimeError(
            f"rank 0 has {everywhere[0]}; ranks {differ} have {everywhere[differ[0]]}"
        )


@fix()
def fingerprint_before_joining() -> None:
    """Exchange torch, CUDA and a digest of the script first; join when they agree."""
    said = ""
    try:
        must_agree(fingerprint(script_of_this_node()), "first")
    except RuntimeError as error:
        said = str(error)
    assert f"ranks {second_node()} have torch" in said, f"the fingerprints said {said!r}"
    script = script_of_this_node(brought_up_to_date=True)
    must_agree(fingerprint(script), "second")
    with session(backend=backend()) as world:
        wrap(nn.Linear(script.WIDTH, 1), world)
        script.train()


if __name__ == "__main__":
    main()
