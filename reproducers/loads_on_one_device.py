"""DDP510 loads-on-one-device: without map_location, all ranks load to the GPU of rank 0.

torchrun --nproc-per-node=4 reproducers/loads_on_one_device.py broken

It needs no GPU. A file says of each tensor on which device it was, and torch.load asks for that
device; what answers here is a stand-in, which notes the device and leaves the tensor in memory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.serialization import register_package

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
from ddpdoctor.stack.process_group import session, unwrap, wrap

WIDTH = 256

State = dict[str, Tensor]


class StandIn:
    """In place of the GPUs: all that is saved here is on one of them; what is loaded is noted."""

    def __init__(self, saved_on: str = "cuda:0") -> None:
        self.saved_on = saved_on
        self.bytes: Counter[str] = Counter()
        register_package(0, self.tag, self.restore)  # asked before torch's own

    def tag(self, storage: Any) -> str:
        """Say on which device a storage is."""
        return self.saved_on

    def restore(self, storage: Any, location: str) -> Any:
        """Take a storage to its device, if that is a GPU."""
        if not location.startswith("cuda"):
            return None
        self.bytes[location] += storage.nbytes()
        return storage


def build(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Linear(WIDTH, WIDTH).to(own_device())


def resume(load: Callable[[Path], State], saved_on: str = "cuda:0") -> None:
    """Save on rank 0, load on every rank into a model of another seed, and look where it went."""
    gpus, path = StandIn(saved_on), shared_folder() / "last.pt"
    trained, fresh = DistributedDataParallel(build(0)), build(dist.get_rank() + 1)
    if dist.get_rank() == 0:
        torch.save(trained.module.state_dict(), path)
    dist.barrier()
    fresh.load_state_dict(load(path))
    check(trained.module, fresh, gpus)
    del trained  # the wrapper must not outlive the group


def check(trained: nn.Module, fresh: nn.Module, gpus: StandIn) -> None:
    """Assert that no rank put anything on a GPU that is not its own."""
    assert same_on_all_ranks(fresh.parameters()), "parameters differ between the ranks"
    expected = trained.state_dict()
    assert all(torch.equal(v, expected[k]) for k, v in fresh.state_dict().items()), "not the file's"
    counts: list[Counter[str]] = [gpus.bytes] * dist.get_world_size()
    dist.all_gather_object(counts, gpus.bytes)
    told = ", ".join(f"{n >> 10} kB on {gpu}" for gpu, n in sorted(sum(counts, Counter()).items()))
    measured(f"loaded by {dist.get_world_size()} ranks: {told or 'nothing on a GPU'}")
    foreign = {*gpus.bytes} - {f"cuda:{os.environ['LOCAL_RANK']}"}
    asked = [None] * dist.get_world_size()
    dist.all_gather_object(asked, sorted(foreign))
    assert not any(asked), f"loaded to the GPU of another rank, by rank: {asked}"


@broken(ranks="nonzero")
def load_as_it_was_saved() -> None:
    """Load without map_location."""
    dist.init_process_group(backend())
    resume(lambda path: torch.load(path))  # <-- DDP510
    dist.destroy_process_group()


@documented(source="PyTorch tutorial, Getting Started with DDP")
def map_from_rank_0() -> None:
    """Map cuda:0 to the rank's own GPU."""
    dist.init_process_group(backend())
    own = {"cuda:0": f"cuda:{dist.get_rank()}"}
    resume(lambda path: torch.load(path, map_location=own))
    dist.destroy_process_group()


@documented(source="PyTorch tutorial, Getting Started with DDP")
def map_from_rank_0_what_was_elsewhere() -> None:
    """The same, with a file that was saved on another GPU than cuda:0."""
    dist.init_process_group(backend())
    own = {"cuda:0": f"cuda:{dist.get_rank()}"}
    last = f"cuda:{dist.get_world_size() - 1}"
    resume(lambda path: torch.load(path, map_location=own), saved_on=last)
    dist.destroy_process_group()


@documented(source="pytorch/examples#1078")
def map_to_local_rank() -> None:
    """Map everything to the GPU of LOCAL_RANK."""
    dist.init_process_group(backend())
    own = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    resume(lambda path: torch.load(path, map_location=own))
    dist.destroy_process_group()


@documented(source="pytorch/vision#2142, references/segmentation/train.py")
def map_to_the_cpu() -> None:
    """Map everything to the CPU; load_state_dict copies it to where the model is."""
    dist.init_process_group(backend())
    resume(lambda path: torch.load(path, map_location="cpu"))
    dist.destroy_process_group()


@fix()
def stack_load() -> None:
    """The stack's load, which maps to the CPU."""
    with session(backend=backend()) as world:
        gpus, path = StandIn(), shared_folder() / "last.pt"
        trained, fresh = wrap(build(0), world), build(world.rank + 1)
        checkpoint.save(unwrap(trained).state_dict(), path, world)
        fresh.load_state_dict(checkpoint.load(path, world))
        check(unwrap(trained), fresh, gpus)
        del trained  # the wrapper must not outlive the group


if __name__ == "__main__":
    main()
